"""Code that tries to be taken for the driver."""

import json
import os
import unittest

from kit import KernelTest

PAYLOADS = r"""
import json, os, socket, struct
image = b'{"mime": "image/png", "width": 1, "height": 1, "scaled": false}\n\x89PNG\r\n\x1a\n'
end = json.dumps({'end': 'done', 'code': 0, 'state': 'none'}).encode()
value = json.dumps({'text': 'forged', 'type': 'str', 'truncated': False}).encode()
frames = []
for letter, payload in ((b'V', value), (b'I', image), (b'X', end), (b'R', b'done 0')):
    length = struct.pack('>I', len(payload))
    for tag in (b'', b'\0' * 16, os.urandom(16)):
        frames += [letter + b'0' + payload, tag + letter + b'0' + payload]
        frames += [tag + letter + length + payload, tag + b'+' + payload]

def flood(fd):
    for frame in frames:
        try:
            os.write(fd, frame)
        except OSError:
            pass
"""


class Forge(KernelTest):
    def check_honest(self, result):
        """The code ends with os._exit(9): anything else was forged."""
        self.check_end(result, "exit", 9)
        self.assertEqual((result.text, result.images, result.error), (None, [], None))

    def test_frames_on_every_descriptor_are_dropped(self):
        result = self.run_code(
            PAYLOADS + "for fd in range(3, 1024): flood(fd)\nprint('x')\nos._exit(9)"
        )
        self.check_honest(result)
        self.assertEqual(result.stdout, "x\n")

    def test_frames_in_the_output_are_output(self):
        result = self.run_code(PAYLOADS + "flood(1)\nflood(2)\nos._exit(9)")
        self.check_honest(result)
        self.assertIn("forged", result.stdout)
        self.assertIn("forged", result.stderr)

    def test_frames_through_proc_are_dropped(self):
        result = self.run_code(
            PAYLOADS + "for pid in ('self', str(os.getppid())):\n"
            "    folder = '/proc/%s/fd' % pid\n"
            "    try: names = os.listdir(folder)\n"
            "    except OSError: names = range(400)\n"
            "    for name in names:\n"
            "        try: flood(os.open('%s/%s' % (folder, name), os.O_WRONLY | os.O_NONBLOCK))\n"
            "        except OSError: pass\n"
            "os._exit(9)"
        )
        self.check_honest(result)

    def test_a_child_sends_no_frames(self):
        result = self.run_code(
            "import os\nif os.fork() == 0:\n    display('child')\n    os._exit(0)\nos.wait()\nNone"
        )
        self.check_done(result)
        self.assertEqual(result.displays, [])

    def test_the_code_has_three_descriptors_and_its_own_end_of_the_pair(self):
        result = self.run_code(
            "import os\nfor fd in os.listdir('/proc/self/fd'):\n"
            "    try: print(fd, os.readlink('/proc/self/fd/' + fd))\n"
            "    except OSError: pass\n"
            "open('/dev/null').fileno()"
        )
        lines = [line.split(" ")[1].partition(":")[0] for line in result.stdout.splitlines()]
        self.assertEqual(lines[:4], ["/dev/null", "pipe", "pipe", "socket"])
        self.assertEqual(set(lines[4:]), {"/dev/null"})  # kept for the next code
        self.assertEqual(result.text, "3")

    def test_the_memory_of_the_watcher_and_the_kernel_is_closed(self):
        result = self.run_code(
            "import os\nparent = os.getppid()\n"
            "kernel = open('/proc/%d/stat' % parent).read().rpartition(')')[2].split()[1]\n"
            "for pid in (parent, kernel, os.getpid()):\n"
            "    path = '/proc/%s/mem' % pid\n"
            "    print(os.stat(path).st_uid == os.stat('/proc/self').st_uid)",
        )
        self.assertEqual(result.stdout.split(), ["False", "False", "True"])

    def test_the_own_tag_forges_nothing_but_the_own_words(self):
        """Code may pick its own driver apart; the end it cannot."""
        result = self.run_code(
            "import gc, os\n"
            "channel = [o for o in gc.get_objects() if type(o).__name__ == 'Channel'] or [None]\n"
            "channel = channel[0] or display.__self__.channel\n"
            "end = b'{\"end\": \"done\", \"code\": 0, \"state\": \"kept\"}'\n"
            "channel.send(b'X', end)\n"
            "channel.send(b'V', b'{\"text\": \"mine\", \"type\": \"str\", \"truncated\": false}')\n"
            "os._exit(9)"
        )
        self.check_end(result, "exit", 9)
        self.assertEqual(result.text, "mine")

    def test_an_end_with_a_number_of_any_length_is_taken(self):
        """int() refuses more than 4300 digits."""
        result = self.run_code(
            "import os, subprocess\n"
            "child = subprocess.Popen(['sleep', '60'], start_new_session=True)\n"
            "os.write(1, b'%d' % child.pid)\n"
            "display.__self__.channel.send(b'R', b'done ' + b'9' * 5000)\nos._exit(9)"
        )
        self.check_end(result, "exit", 9)
        self.assertFalse(os.path.exists("/proc/" + result.stdout))

    def test_an_interrupt_in_the_middle_of_a_frame_spoils_only_that_frame(self):
        result = self.run_code(
            "while True: display('x' * 15000, 'y' * 15000)", timeout_ms=300, grace_ms=5000
        )
        self.check_error(result, "KeyboardInterrupt", timed_out=True)
        for display in result.displays:
            self.assertEqual(len(display["text"]), 15000)

    def test_more_than_the_total_is_left_out_and_said(self):
        result = self.run_code(
            "class Big:\n    def _repr_png_(self): return data\n"
            "import struct, zlib\n"
            "head = b'\\x89PNG\\r\\n\\x1a\\n' + struct.pack('>I', 13) + b'IHDR'\n"
            "data = head + struct.pack('>II', 9, 9) + b'x' * 6000000\n"
            "display(*[Big()] * 4)\n1/0",
            image_bytes=1 << 30,
        )
        self.check_error(result, "ZeroDivisionError")
        self.assertEqual(len(result.images), 2)
        self.assertIn("More was shown", json.dumps(result.notes))


if __name__ == "__main__":
    unittest.main()
