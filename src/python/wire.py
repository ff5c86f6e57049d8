"""Frames (src/run/kernel.h), and how the runner hands them to its watcher.

Between the two, each packet begins with the tag of the run. The first one of a frame goes on with
the letter, the length of the payload and a part of it, the others with a plus sign and a part each.
The watcher passes on whole frames only, so one that an interrupt cut short is as if never begun.
"""

import json
import os
import socket
import struct
import threading

PACKET_MAX = 65536
FRAME_MAX = 8 * 1024 * 1024
TOTAL_MAX = 16 * 1024 * 1024

STARTED = b"S"  # from the watcher, like the last one
VALUE = b"V"
DISPLAY = b"D"
IMAGE = b"I"
FILE = b"F"
ERROR = b"E"
NOTE = b"N"
END = b"X"
OUTCOME = b"R"  # from the runner to its watcher: the code has ended; "done 0" and the like
FROM_RUNNER = (VALUE, DISPLAY, IMAGE, FILE, ERROR, NOTE, OUTCOME)

TAG_SIZE = 16
_MORE = b"+"
_LENGTH = struct.Struct(">I")
_HEAD_SIZE = TAG_SIZE + 1 + _LENGTH.size
_PART = PACKET_MAX - _HEAD_SIZE


def clean(text):
    """The text as any JSON parser takes it: no lone surrogates, no NUL."""
    text = text.encode("utf-8", "backslashreplace").decode("utf-8")
    return text.replace("\0", "\ufffd")


def pack(members):
    return json.dumps(members, ensure_ascii=False).encode("utf-8")


def host_packets(letter, payload):
    """The packets of a frame for the host."""
    size = PACKET_MAX - 2
    parts = [payload[i : i + size] for i in range(0, len(payload), size)] or [b""]
    goes_on = [b"1"] * (len(parts) - 1) + [b"0"]
    return [letter + more + part for more, part in zip(goes_on, parts)]


class Channel:
    """The runner's end. Between runs, and in children, what is sent goes nowhere."""

    def __init__(self, fd):
        self.socket = socket.socket(fileno=fd)
        self.tag = None
        # A handler for signals may send while this thread does: that frame is lost, nobody hangs.
        self.lock = threading.RLock()
        os.register_at_fork(after_in_child=self.forget)

    def forget(self):
        self.tag = None
        self.lock = threading.RLock()
        self.socket.close()

    def send(self, letter, payload):
        if self.tag is None or len(payload) > FRAME_MAX:
            return
        with self.lock:
            head = letter + _LENGTH.pack(len(payload))
            for i in range(0, max(len(payload), 1), _PART):
                self.socket.send(self.tag + head + payload[i : i + _PART])
                head = _MORE

    def end(self, end, code):
        """The last frame; under the lock, so no other thread is in the middle of one."""
        with self.lock:
            self.send(OUTCOME, b"%s %d" % (end.encode("ascii"), code))
            self.tag = None


class Assembly:
    """The watcher's end: frames out of packets that anybody in the sandbox may have sent."""

    def __init__(self):
        self.tag = os.urandom(TAG_SIZE)
        self.letter = None
        self.payload = bytearray()
        self.missing = 0

    def add(self, packet):
        """(letter, payload) when this packet completes a frame, else None."""
        body = packet[TAG_SIZE:]
        if packet[:TAG_SIZE] != self.tag or not body:
            return None
        if body[:1] == _MORE:
            return self._add_part(body[1:])
        self.letter = None
        if body[:1] not in FROM_RUNNER or len(packet) < _HEAD_SIZE:
            return None
        self.missing = _LENGTH.unpack_from(body, 1)[0]
        if self.missing > FRAME_MAX:
            return None
        self.letter = body[:1]
        self.payload = bytearray()
        return self._add_part(body[1 + _LENGTH.size :])

    def _add_part(self, part):
        if self.letter is None or len(part) > self.missing:
            self.letter = None
            return None
        self.payload += part
        self.missing -= len(part)
        if self.missing:
            return None
        frame = (self.letter, bytes(self.payload))
        self.letter = None
        return frame
