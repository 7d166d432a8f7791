# ruff: noqa: UP031, RUF005
"""Makes .venv and installs a file of requirements into it, or says in one sentence what is missing.

`requirements-site.txt` is what the site is built with; `requirements.txt`, the default, is everything. The
variable VENV names another folder than .venv.

Plain standard library, and nothing that an old Python could not at least parse: it is the first thing that
runs on a new machine.
"""

import os
import re
import subprocess
import sys
import time

OLDEST = (3, 11)
STAMPS = {  # what is there when a file is installed
    "requirements-site.txt": [".installed-site"],
    "requirements.txt": [".installed-site", ".installed"],
}
ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
VENV = os.environ.get("VENV") or ".venv"
NO_NETWORK = re.compile(
    r"NewConnectionError|Failed to establish|name resolution|Name or service not known|ConnectTimeout"
    r"|Network is unreachable|Max retries exceeded|Connection refused|ProxyError|Read timed out|getaddrinfo"
    r"|from versions: none",
    re.IGNORECASE,
)


def stop(sentence):
    """Ends with one sentence for the reader and a non-zero exit code."""
    sys.stderr.write(sentence + "\n")
    sys.exit(1)


def check_python():
    """This Python must be new enough and able to make virtual environments."""
    version = ".".join(str(n) for n in sys.version_info[:2])
    oldest = ".".join(str(n) for n in OLDEST)
    if sys.version_info < OLDEST:
        stop(
            "The book needs Python %s or newer, and %s is Python %s: install a newer one, or name it with "
            "`make PYTHON=/path/to/python3.11 ...`." % (oldest, sys.executable, version)
        )
    try:
        import ensurepip  # noqa: F401  Debian leaves it out of python3
        import venv  # noqa: F401
    except ImportError:
        stop(
            "Python %s at %s has no venv module: install it (on Debian and Ubuntu: "
            "`sudo apt install python%s-venv`) and run make again." % (version, sys.executable, version)
        )


def usable(python):
    """Whether there is an interpreter of the right age at this path."""
    code = "import sys, pip; sys.exit(sys.version_info < %r)" % (OLDEST,)
    try:
        with open(os.devnull, "w") as null:
            return subprocess.call([python, "-c", code], stdout=null, stderr=null) == 0
    except OSError:
        return False


def main():
    """Makes the environment that the Makefile asks for, and leaves its stamps when it is complete."""
    wanted = sys.argv[1] if len(sys.argv) > 1 else "requirements.txt"
    if wanted not in STAMPS:
        stop("%s is none of the files that can be installed: %s." % (wanted, ", ".join(sorted(STAMPS))))
    check_python()
    os.chdir(ROOT)
    python = os.path.join(VENV, "bin", "python")
    log = os.path.join(VENV, wanted.replace("requirements", "install").replace(".txt", ".log"))
    started = time.time()
    if not usable(python):
        sys.stdout.write("Making %s with %s ...\n" % (VENV, sys.executable))
        sys.stdout.flush()
        made = subprocess.Popen(
            [sys.executable, "-m", "venv", "--clear", VENV],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
        )
        answer = made.communicate()[0].decode("utf-8", "replace")
        if made.returncode:
            stop(
                "%s could not make a virtual environment in %s (%s): mend that, or choose another "
                "Python with `make PYTHON=...`." % (sys.executable, VENV, " ".join(answer.split())[-300:])
            )
    sys.stdout.write("Installing %s into %s (once; the log is %s) ...\n" % (wanted, VENV, log))
    sys.stdout.flush()
    with open(log, "w") as out:
        code = subprocess.call(
            [python, "-m", "pip", "install", "--disable-pip-version-check", "--progress-bar", "off"]
            # seqeval has no wheel, and the old way of building it fails in an environment that has wheel
            + ["--use-pep517", "-r", wanted],
            stdout=out,
            stderr=subprocess.STDOUT,
        )
    if code:
        with open(log) as lines:
            text = lines.read()
        if NO_NETWORK.search(text):
            stop(
                "pip could not reach a package index, which the first run needs (later ones do not): "
                "connect this machine to the network, or point pip at a local index, and run make again."
            )
        errors = [line for line in text.splitlines() if line.startswith("ERROR")] or text.splitlines()[-1:]
        stop("pip could not install %s (%s): the whole story is in %s." % (wanted, errors[-1][:300], log))
    for name in STAMPS[wanted]:
        with open(os.path.join(VENV, name), "w") as stamp:
            stamp.write("%s is installed\n" % wanted)
    sys.stdout.write("Installed in %d s.\n" % (time.time() - started))


if __name__ == "__main__":
    main()
