/*
 * The automaton is a trie of the values with failure links. Values are inserted in sorted order,
 * so nodes are numbered in preorder: the first child of a node is the next node, and a node costs
 * 13 bytes (100 values of 16 KiB: 21 MB; 100 ordinary tokens: 50 KB). A node without children is
 * never a state between two bytes: its failure link is taken at once, since no match can go on
 * from it. Therefore the depth of the state is the number of bytes that are still open.
 *
 * A stream works on its window, the held bytes followed by the bytes of the feed. Matches are
 * collected as a list of disjoint ranges of the window; each match ends behind all others, so a
 * new one swallows ranges at the end of the list only. At the end of a feed everything but the
 * open bytes is settled.
 *
 * Between matches most bytes are never looked at. Where the state is the root, the pair of bytes
 * that would end the first MASK_VALUE_MIN bytes of a value tells how far the next possible
 * beginning is away (the idea of Wu and Manber).
 */
#include "run/mask.h"

#include <assert.h>
#include <string.h>

#define FEED_CHUNK (64 * 1024) /* bounds the list of ranges */
#define ROOT       0
#define NO_SIBLING 0 /* the root is nobody's sibling */

struct value {
	char *data;
	size_t len;
};

/* One array per property: the walk touches few of them. */
struct automaton {
	bool compiled;
	uint32_t count;
	unsigned char *byte; /* on the edge that leads here */
	uint16_t *depth;     /* bytes from the root */
	uint16_t *match;     /* length of the longest value that ends here, or 0 */
	uint32_t *sibling;   /* next child of the same parent */
	uint32_t *fail;      /* longest proper suffix that begins a value and can go on */
	uint32_t first[256]; /* children of the root by byte */
	uint8_t skip[65536]; /* by pair of bytes, see skip_ahead */
};
_Static_assert(MASK_VALUE_MAX <= UINT16_MAX, "lengths are stored in 16 bits");

struct mask {
	struct value *values;
	size_t count;
	struct automaton *automaton; /* a cache: made of the values when the first stream begins */
};

/* Covered bytes of a window: from (included) to (excluded). */
struct range {
	size_t from, to;
};

struct mask *mask_new(void)
{
	struct mask *mask = xcalloc(1, sizeof(*mask));
	mask->automaton = xcalloc(1, sizeof(*mask->automaton));
	return mask;
}

static void automaton_finish(struct automaton *a)
{
	free(a->byte);
	free(a->depth);
	free(a->match);
	free(a->sibling);
	free(a->fail);
}

void mask_free(struct mask *mask)
{
	if (mask == NULL)
		return;
	for (size_t i = 0; i < mask->count; i++)
		free(mask->values[i].data);
	free(mask->values);
	automaton_finish(mask->automaton);
	free(mask->automaton);
	free(mask);
}

void mask_add(struct mask *mask, const char *value, size_t len)
{
	assert(!mask->automaton->compiled);
	if (len < MASK_VALUE_MIN)
		return;
	if (len > MASK_VALUE_MAX)
		len = MASK_VALUE_MAX;
	mask->values = xrealloc(mask->values, (mask->count + 1) * sizeof(*mask->values));
	char *data = xmalloc(len);
	memcpy(data, value, len);
	mask->values[mask->count++] = (struct value){data, len};
}

bool mask_is_empty(const struct mask *mask)
{
	return mask->count == 0;
}

/* --- compilation --------------------------------------------------------------------------- */

static int compare_values(const void *a, const void *b)
{
	const struct value *x = a, *y = b;
	size_t common = x->len < y->len ? x->len : y->len;
	int order = memcmp(x->data, y->data, common);
	return order != 0 ? order : (x->len > y->len) - (x->len < y->len);
}

static void allocate_nodes(struct automaton *a, uint32_t max)
{
	a->byte = xcalloc(max, sizeof(*a->byte));
	a->depth = xcalloc(max, sizeof(*a->depth));
	a->match = xcalloc(max, sizeof(*a->match));
	a->sibling = xcalloc(max, sizeof(*a->sibling));
	a->fail = xcalloc(max, sizeof(*a->fail));
}

static bool has_child(const struct automaton *a, uint32_t node)
{
	return node + 1 < a->count && a->depth[node + 1] > a->depth[node];
}

/* The child by a byte, or ROOT when there is none. */
static uint32_t child(const struct automaton *a, uint32_t node, unsigned char byte)
{
	if (node == ROOT)
		return a->first[byte];
	uint32_t next = has_child(a, node) ? node + 1 : NO_SIBLING;
	while (next != NO_SIBLING && a->byte[next] != byte)
		next = a->sibling[next];
	return next;
}

/* Sorted values: what is new of this one hangs behind the last child of a node of the value
 * before it. */
static void insert(struct automaton *a, const struct value *value)
{
	uint32_t node = ROOT, next = ROOT;
	size_t i = 0;
	while (i < value->len && (next = child(a, node, (unsigned char)value->data[i])) != ROOT) {
		node = next;
		i++;
	}
	if (i < value->len && node != ROOT && has_child(a, node)) {
		uint32_t last = node + 1;
		while (a->sibling[last] != NO_SIBLING)
			last = a->sibling[last];
		a->sibling[last] = a->count;
	}
	for (; i < value->len; i++) {
		if (node == ROOT)
			a->first[(unsigned char)value->data[i]] = a->count;
		node = a->count++;
		a->byte[node] = (unsigned char)value->data[i];
		a->depth[node] = (uint16_t)(i + 1);
	}
	a->match[node] = (uint16_t)value->len;
}

static uint32_t step(const struct automaton *a, uint32_t state, unsigned char byte)
{
	uint32_t next;
	while ((next = child(a, state, byte)) == ROOT && state != ROOT)
		state = a->fail[state];
	return next;
}

/* Sets the link of a node whose parent and all nodes of less depth have theirs. */
static void link_node(struct automaton *a, uint32_t parent, uint32_t node)
{
	uint32_t suffix = parent == ROOT ? ROOT : step(a, a->fail[parent], a->byte[node]);
	if (a->match[node] == 0)
		a->match[node] = a->match[suffix];
	a->fail[node] = suffix == ROOT || has_child(a, suffix) ? suffix : a->fail[suffix];
}

/* Breadth first: links lead to nodes of less depth. */
static void link_all(struct automaton *a)
{
	AUTO_FREE uint32_t *queue = xmalloc(a->count * sizeof(*queue));
	uint32_t head = 0, tail = 0;
	for (int byte = 0; byte < 256; byte++)
		if (a->first[byte] != ROOT)
			queue[tail++] = a->first[byte];
	while (head < tail) {
		uint32_t node = queue[head++];
		if (!has_child(a, node))
			continue;
		for (uint32_t next = node + 1; next != NO_SIBLING; next = a->sibling[next]) {
			link_node(a, node, next);
			queue[tail++] = next;
		}
	}
}

static size_t pair_of(const unsigned char *p)
{
	return (size_t)p[0] << 8 | p[1];
}

/* A pair at bytes i, i + 1 of a value means that it may begin MASK_VALUE_MIN - 2 - i later than
 * the place that is looked at. */
static void note_pairs(struct automaton *a, const struct value *value)
{
	const unsigned char *data = (const unsigned char *)value->data;
	for (size_t i = 0; i <= MASK_VALUE_MIN - 2; i++) {
		uint8_t *skip = &a->skip[pair_of(data + i)];
		if (*skip > MASK_VALUE_MIN - 2 - i)
			*skip = (uint8_t)(MASK_VALUE_MIN - 2 - i);
	}
}

static void compile(const struct mask *mask)
{
	struct automaton *a = mask->automaton;
	uint32_t max = 1;
	for (size_t i = 0; i < mask->count; i++)
		max += (uint32_t)mask->values[i].len;
	allocate_nodes(a, max);
	a->count = 1;
	memset(a->skip, MASK_VALUE_MIN - 1, sizeof(a->skip));
	qsort(mask->values, mask->count, sizeof(*mask->values), compare_values);
	for (size_t i = 0; i < mask->count; i++) {
		insert(a, &mask->values[i]);
		note_pairs(a, &mask->values[i]);
	}
	link_all(a);
	a->compiled = true;
}

/* --- streams ------------------------------------------------------------------------------- */

void mask_stream_init(struct mask_stream *stream, const struct mask *mask)
{
	*stream = (struct mask_stream){.mask = mask, .held = BUF_INIT, .covered = BUF_INIT};
	if (mask != NULL && mask->count > 0 && !mask->automaton->compiled)
		compile(mask);
}

void mask_stream_finish(struct mask_stream *stream)
{
	buf_finish(&stream->held);
	buf_finish(&stream->covered);
}

/* Adds the range of a match, which ends behind all ranges so far. */
static void cover(struct mask_stream *stream, size_t from, size_t to)
{
	struct buf *covered = &stream->covered;
	while (covered->len > 0) {
		struct range last;
		memcpy(&last, covered->data + covered->len - sizeof(last), sizeof(last));
		if (last.to < from)
			break;
		if (last.from < from)
			from = last.from;
		covered->len -= sizeof(last);
	}
	buf_append(covered, &(struct range){from, to}, sizeof(struct range));
}

/* Appends plain bytes of the window. */
static void pass(struct mask_stream *stream, const char *data, size_t from, size_t to,
		 struct buf *out)
{
	size_t held = stream->held.len;
	if (from == to)
		return;
	stream->in_run = false;
	if (from < held)
		buf_append(out, stream->held.data + from, (to < held ? to : held) - from);
	if (to > held) {
		size_t start = from > held ? from - held : 0;
		buf_append(out, data + start, to - held - start);
	}
}

/* Appends what the window says before end, and takes that away from the list of ranges. */
static void settle(struct mask_stream *stream, const char *data, size_t end, struct buf *out)
{
	struct buf *covered = &stream->covered;
	size_t pos = 0, rest = 0;
	for (size_t i = 0; i < covered->len; i += sizeof(struct range)) {
		struct range range;
		memcpy(&range, covered->data + i, sizeof(range));
		if (range.from < end) {
			pass(stream, data, pos, range.from, out);
			if (!stream->in_run)
				buf_puts(out, MASK_TEXT);
			stream->in_run = true;
			pos = range.to < end ? range.to : end;
		}
		if (range.to <= end)
			continue;
		range.from = range.from > end ? range.from - end : 0;
		range.to -= end;
		memcpy(covered->data + rest, &range, sizeof(range));
		rest += sizeof(range);
	}
	covered->len = rest;
	pass(stream, data, pos, end, out);
}

/* Keeps the bytes of the window from end on. */
static void hold(struct mask_stream *stream, const char *data, size_t len, size_t end)
{
	struct buf *held = &stream->held;
	if (end >= held->len) {
		size_t start = end - held->len;
		buf_clear(held);
		buf_append(held, data + start, len - start);
		return;
	}
	memmove(held->data, held->data + end, held->len - end);
	held->len -= end;
	buf_append(held, data, len);
}

/* In the root: the next place from i on where a value may begin, or where too few bytes are left
 * to tell. */
static size_t skip_ahead(const struct automaton *a, const unsigned char *data, size_t i, size_t len)
{
	uint8_t skip;
	while (i + MASK_VALUE_MIN <= len &&
	       (skip = a->skip[pair_of(data + i + MASK_VALUE_MIN - 2)]) > 0)
		i += skip;
	return i;
}

static void feed_chunk(struct mask_stream *stream, const char *data, size_t len, struct buf *out)
{
	const struct automaton *a = stream->mask->automaton;
	const unsigned char *bytes = (const unsigned char *)data;
	size_t held = stream->held.len;
	uint32_t state = stream->state;
	for (size_t i = 0; i < len; i++) {
		if (state == ROOT && (i = skip_ahead(a, bytes, i, len)) >= len)
			break;
		state = step(a, state, bytes[i]);
		size_t match = a->match[state], end = held + i + 1;
		if (match > 0)
			cover(stream, end - match, end);
		if (!has_child(a, state))
			state = a->fail[state];
	}
	stream->state = state;
	size_t end = held + len - a->depth[state];
	settle(stream, data, end, out);
	hold(stream, data, len, end);
}

void mask_feed(struct mask_stream *stream, const char *data, size_t len, struct buf *out)
{
	if (stream->mask == NULL || mask_is_empty(stream->mask)) {
		buf_append(out, data, len);
		return;
	}
	while (len > 0) {
		size_t n = len < FEED_CHUNK ? len : FEED_CHUNK;
		feed_chunk(stream, data, n, out);
		data += n;
		len -= n;
	}
}

void mask_end(struct mask_stream *stream, struct buf *out)
{
	settle(stream, NULL, stream->held.len, out);
	buf_clear(&stream->held);
	stream->state = ROOT;
	stream->in_run = false;
}
