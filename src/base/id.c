/* Random ids from libsodium, and names people can say. */
#include "base/id.h"

#include <sodium.h>
#include <stdio.h>
#include <string.h>

void id_make(char out[static ID_LEN + 1])
{
	unsigned char bytes[ID_BYTES];
	randombytes_buf(bytes, sizeof(bytes));
	sodium_bin2hex(out, ID_LEN + 1, bytes, sizeof(bytes));
}

bool id_is_valid(const char *s)
{
	return strlen(s) == ID_LEN && strspn(s, "0123456789abcdef") == ID_LEN;
}

bool name_is_valid(const char *s)
{
	size_t len = strlen(s);
	if (len == 0 || len > NAME_MAX_LEN || s[0] == '-' || s[0] == '_')
		return false;
	for (size_t i = 0; i < len; i++) {
		unsigned char c = (unsigned char)s[i];
		/* isalnum depends on the locale; these do not. */
		if (!((c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') ||
		      c == '_' || c == '-'))
			return false;
	}
	return true;
}

void name_make(char out[static NAME_MADE_LEN])
{
	static const char *const moods[] = {"calm",  "brave", "bright", "quick", "quiet", "clear",
					    "eager", "fair",  "gentle", "keen",  "merry", "neat",
					    "proud", "ready", "swift",  "warm"};
	static const char *const beings[] = {"otter", "heron", "maple", "cedar", "finch", "lynx",
					     "robin", "tulip", "birch", "crane", "hare",  "koala",
					     "panda", "raven", "seal",  "wren"};
	snprintf(out, NAME_MADE_LEN, "%s-%s-%04x", moods[randombytes_uniform(16)],
		 beings[randombytes_uniform(16)], (unsigned)randombytes_uniform(0x10000));
}
