"""Files made for the caller, of what is too large to be shown."""

import os

from . import wire


class Saver:
    def __init__(self, channel, directory):
        self.channel = channel
        self.directory = directory

    def save(self, stem, suffix, data, about):
        """The path of a new file, which the caller is told of; None, and a note, when it failed."""
        try:
            path = self._write(stem, suffix, data)
        except OSError as error:
            self.note("%s could not be saved: %s." % (about, error.strerror))
            return None
        members = {"path": wire.clean(path), "about": wire.clean(about)}
        self.channel.send(wire.FILE, wire.pack(members))
        return path

    def note(self, sentence):
        self.channel.send(wire.NOTE, wire.pack({"text": wire.clean(sentence)[:300]}))

    def _write(self, stem, suffix, data):
        os.makedirs(self.directory, exist_ok=True)
        number = 1
        while True:
            path = os.path.join(self.directory, "%s-%d%s" % (stem, number, suffix))
            try:
                file = open(path, "xb")
            except FileExistsError:
                number += 1
                continue
            with file:
                file.write(data)
            return path
