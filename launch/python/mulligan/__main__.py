"""The command `mulligan`: this process becomes the native program."""
import os
import sys
from typing import NoReturn

from mulligan.program import Error, program


def main() -> NoReturn:
    try:
        os.execv(program(), ["mulligan", *sys.argv[1:]])
    except Error as error:
        print(f"mulligan: {error}", file=sys.stderr)
        sys.exit(error.exit_code)


if __name__ == "__main__":
    main()
