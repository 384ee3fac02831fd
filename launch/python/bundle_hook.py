"""Tells hatchling which machines a wheel with the native program is for; without the bundle the wheel is plain Python."""
import os

from hatchling.builders.hooks.plugin.interface import BuildHookInterface


class BundleHook(BuildHookInterface):
    def initialize(self, version, build_data):
        platform = os.environ.get("MULLIGAN_WHEEL_PLATFORM")  # manylinux_2_36_x86_64
        if platform:
            build_data["pure_python"] = False
            build_data["tag"] = f"py3-none-{platform}"
