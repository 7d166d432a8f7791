"""Files from the network: whole and as expected, or not at all."""

from pathlib import Path


def fetch(url: str, sha256: str, name: str, cache: str | Path | None = None) -> Path:
    """The file of this SHA-256 sum from `cache`, after a download if it is not there yet.

    pooch writes beside the cache and moves the file in when its sum is right, so that the cache never
    holds a half-written one; a file there whose sum is wrong is downloaded anew.

    Args:
        url: where the file is.
        sha256: its checksum, in hexadecimal digits.
        name: its name in the cache.
        cache: a folder, made when missing; None: where pooch keeps the files of tformer_lib.

    Raises:
        ConnectionError: if the download fails; the message says that nothing was kept.
        ValueError: if what arrived has another checksum; nothing is kept then, either.
    """
    import pooch  # type: ignore[import-untyped]

    folder = pooch.os_cache("tformer_lib") if cache is None else Path(cache)
    quiet = pooch.get_logger()
    level = quiet.level
    quiet.setLevel("ERROR")
    try:
        downloader = pooch.HTTPDownloader(timeout=30)
        return Path(pooch.retrieve(url, f"sha256:{sha256}", name, folder, downloader=downloader))
    except ValueError as error:  # pooch's own, for a wrong checksum
        raise ValueError(f"{url} sent a file with another checksum than {sha256}; it was not kept") from error
    except OSError as error:
        raise ConnectionError(f"{url} could not be downloaded, and nothing was kept: {error}") from error
    finally:
        quiet.setLevel(level)
