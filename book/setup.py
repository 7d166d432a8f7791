"""The folder `book` is the package `tformer_book`, with whatever chapters lie in it."""

from setuptools import find_packages, setup

PACKAGE = "tformer_book"
parts = find_packages(exclude=["site", "site.*", "api", "api.*"])
setup(
    packages=[PACKAGE, *(f"{PACKAGE}.{part}" for part in parts)],
    package_dir={PACKAGE: "."},
    package_data={f"{PACKAGE}.{part}": ["*.json", "records/*.json"] for part in parts},
)
