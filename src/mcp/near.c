/*
 * A cost for each candidate, the smallest wins. Models vary names in four ways: in spelling
 * (edit distance), in style (camel case), in length (an abbreviation, or a word more), and in the
 * word itself, which other programs have taught them.
 */
#include "mcp/near.h"

#include <ctype.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/util.h"

#define NAME_CAP  64 /* tool names end there; a longer argument name is not a slip of the pen */
#define FAR       1000
#define WORDS_MAX 11

/* Lower case, without "_" and "-". False when it is too long to compare. */
static bool normalise(const char *name, char out[static NAME_CAP])
{
	size_t len = 0;
	for (; *name != '\0'; name++) {
		if (*name == '_' || *name == '-')
			continue;
		if (len == NAME_CAP - 1)
			return false;
		out[len++] = (char)tolower((unsigned char)*name);
	}
	out[len] = '\0';
	return true;
}

static int least(int a, int b)
{
	return a < b ? a : b;
}

/* Insertions, deletions, substitutions and swaps of neighbours. */
static int edits(const char *a, const char *b)
{
	int table[NAME_CAP][NAME_CAP];
	int height = (int)strlen(a), width = (int)strlen(b);
	for (int j = 0; j <= width; j++)
		table[0][j] = j;
	for (int i = 1; i <= height; i++) {
		table[i][0] = i;
		for (int j = 1; j <= width; j++) {
			int best = table[i - 1][j - 1] + (a[i - 1] != b[j - 1]);
			best = least(best, least(table[i - 1][j], table[i][j - 1]) + 1);
			if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
				best = least(best, table[i - 2][j - 2] + 1);
			table[i][j] = best;
		}
	}
	return table[height][width];
}

/* "cmd" of "command": all letters in order, beginning with the same one. */
static bool abbreviates(const char *brief, const char *whole)
{
	if (strlen(brief) < 2 || brief[0] != whole[0])
		return false;
	for (; *whole != '\0' && *brief != '\0'; whole++)
		brief += *brief == *whole;
	return *brief == '\0';
}

/* Words for one thing, as normalised: ours and those that other tools have for it. */
static const char *const synonyms[][WORDS_MAX + 1] = {
	{"sandbox", "name", "box", "container", "session", "workspace"},
	{"path", "dest", "src", "file", "filename", "filepath", "source", "destination", "target"},
	{"oldtext", "oldstring", "oldstr", "search", "find"},
	{"newtext", "newstring", "newstr", "replace", "replacement"},
	{"content", "contents", "text", "filetext", "data", "body"},
	{"command", "script", "code", "input"},
	{"cwd", "dir", "directory", "workdir", "workingdirectory"},
	{"ttlseconds", "ttl", "expiresin", "expires", "timeout"},
	{"offset", "start", "startline", "fromline"},
	{"limit", "count", "lines", "maxlines"},
	{"exec", "run", "bash", "sh", "shell", "execute", "runcommand", "runcode", "python"},
	{"readtext", "readfile", "cat", "view", "openfile"},
	{"writetext", "writefile", "createfile", "savefile"},
	{"edittext", "editfile", "strreplace", "replacetext", "applypatch"},
	{"listfiles", "ls", "listdir", "listdirectory"},
	{"createsandbox", "newsandbox", "startsandbox", "createsession"},
	{"destroysandbox", "deletesandbox", "removesandbox", "stopsandbox"},
};

static bool has_word(const char *const *words, const char *word)
{
	for (; *words != NULL; words++)
		if (strcmp(*words, word) == 0)
			return true;
	return false;
}

static bool mean_the_same(const char *a, const char *b)
{
	for (size_t i = 0; i < ARRAY_LEN(synonyms); i++)
		if (has_word(synonyms[i], a) && has_word(synonyms[i], b))
			return true;
	return false;
}

static int cost(const char *a, const char *b)
{
	int longer = (int)strlen(a), shorter = (int)strlen(b);
	const char *whole = a, *part = b;
	if (longer < shorter) {
		int swap = longer;
		longer = shorter;
		shorter = swap;
		whole = b;
		part = a;
	}
	int distance = edits(a, b);
	/* One slip in four letters: "cmd" is no misspelt "cwd". */
	if (distance <= 2 && distance * 4 <= longer)
		return distance;
	if (mean_the_same(a, b))
		return 3;
	if (abbreviates(part, whole) || (shorter >= 3 && strstr(whole, part) != NULL))
		return 3 + longer - shorter;
	return FAR;
}

const char *near_name(const char *given, const char *const *names, size_t count)
{
	char wrong[NAME_CAP] = "", known[NAME_CAP] = "";
	const char *best = NULL;
	int best_cost = FAR;
	if (!normalise(given, wrong))
		return NULL;
	for (size_t i = 0; i < count; i++) {
		int found = normalise(names[i], known) ? cost(wrong, known) : FAR;
		if (found < best_cost) {
			best_cost = found;
			best = names[i];
		}
	}
	return best;
}
