"""The rig, also where weft is not installed and pytest does not know its plugin."""

from weft.testing.plugin import rig as rig
