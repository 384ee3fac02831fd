"""Odd things in place of a file or folder: each is made at a path of a case's folder."""
import os
import socket

SPARSE_BYTES = 100 << 30


def fifo(path):
    os.mkfifo(path)


def link_to(target):
    def link(path):
        path.symlink_to(target)
    return link


def directory(path):
    path.mkdir()


def full_directory(path):
    path.mkdir()
    (path / "something").write_text("of somebody's\n")


def loop(path):
    path.symlink_to(path.name)


def empty(path):
    path.touch()


def sparse(path):
    with open(path, "wb") as file:
        file.truncate(SPARSE_BYTES)


def unreadable(path):
    path.write_text("secret\n")
    path.chmod(0)


def unreadable_folder(path):
    path.mkdir()
    path.chmod(0)


def unix_socket(path):
    here = os.getcwd()
    os.chdir(path.parent)  # the names of sockets are short
    try:
        with socket.socket(socket.AF_UNIX) as made:
            made.bind(path.name)
    finally:
        os.chdir(here)


def noise(path):
    path.write_bytes(b"\xff\x00\x1b[31m\xc3\x28" * 1000)


def one_line(path):
    path.write_text("[" * 900_000)


def nothing(path):
    pass


# In place of an input; "unreadable" things are read by a user who may not.
INPUTS = {"a FIFO": fifo, "/dev/zero": link_to("/dev/zero"), "/dev/full": link_to("/dev/full"), "/dev/null": link_to("/dev/null"),
          "a folder": directory, "a full folder": full_directory, "a circle of links": loop,
          "a link to nothing": link_to("nowhere/at/all"), "an empty file": empty, "100 GB of holes": sparse,
          "an unreadable file": unreadable, "an unreadable folder": unreadable_folder, "a socket": unix_socket, "noise": noise,
          "900,000 brackets": one_line, "nothing": nothing, "/proc/self/mem": link_to("/proc/self/mem")}

# In place of an output.
OUTPUTS = {"a FIFO": fifo, "/dev/full": link_to("/dev/full"), "a folder": directory, "a full folder": full_directory,
           "a circle of links": loop, "a link to nothing": link_to("nowhere/at/all"), "an empty file": empty,
           "a file that may not be written": unreadable, "a folder that may not be written": unreadable_folder,
           "a socket": unix_socket}

NAMES = (b"line\nbreak", b"\x1b[31mred\x1b[0m", b"\xff\xfe.toml", b"-rf", b"--help", b" ", b"n" * 255, b"n" * 300, b"a/" * 2100 + b"b",
         b"*", b"[x]", b"'quoted'\"", "Ünïcödé ✓".encode(), b"%s%n", b"{}", b"$(touch mark)", b"..", b".", b"a\x07bell", b"\xe2\x80\xae")
