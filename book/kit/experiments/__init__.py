"""What the site's figures record: the model that writes, maps of attention."""
