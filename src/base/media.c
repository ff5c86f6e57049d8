/* Media types by name. The type comes from the name alone: looking into hostile bytes is what a
 * sandbox is for. */
#include "base/media.h"

#include <string.h>
#include <strings.h>

#include "base/util.h"

#define UTF8 "; charset=utf-8"

/* Sorted by extension for the reader; it is short enough to be searched in order. */
static const struct {
	const char *extension;
	const char *type;
} types[] = {
	{"7z", "application/x-7z-compressed"},
	{"avi", "video/x-msvideo"},
	{"bmp", "image/bmp"},
	{"bz2", "application/x-bzip2"},
	{"c", "text/plain" UTF8},
	{"css", "text/css" UTF8},
	{"csv", "text/csv" UTF8},
	{"doc", "application/msword"},
	{"docx", "application/vnd.openxmlformats-officedocument.wordprocessingml.document"},
	{"epub", "application/epub+zip"},
	{"flac", "audio/flac"},
	{"gif", "image/gif"},
	{"gz", "application/gzip"},
	{"h", "text/plain" UTF8},
	{"htm", "text/html" UTF8},
	{"html", "text/html" UTF8},
	{"ico", "image/vnd.microsoft.icon"},
	{"ipynb", "application/x-ipynb+json"},
	{"jpeg", "image/jpeg"},
	{"jpg", "image/jpeg"},
	{"js", "text/javascript" UTF8},
	{"json", "application/json"},
	{"jsonl", "application/jsonl"},
	{"log", "text/plain" UTF8},
	{"m4a", "audio/mp4"},
	{"md", "text/markdown" UTF8},
	{"mkv", "video/matroska"},
	{"mov", "video/quicktime"},
	{"mp3", "audio/mpeg"},
	{"mp4", "video/mp4"},
	{"odp", "application/vnd.oasis.opendocument.presentation"},
	{"ods", "application/vnd.oasis.opendocument.spreadsheet"},
	{"odt", "application/vnd.oasis.opendocument.text"},
	{"ogg", "audio/ogg"},
	{"parquet", "application/vnd.apache.parquet"},
	{"pdf", "application/pdf"},
	{"png", "image/png"},
	{"ppt", "application/vnd.ms-powerpoint"},
	{"pptx", "application/vnd.openxmlformats-officedocument.presentationml.presentation"},
	{"py", "text/x-python" UTF8},
	{"rtf", "application/rtf"},
	{"sh", "text/plain" UTF8},
	{"sql", "application/sql"},
	{"sqlite", "application/vnd.sqlite3"},
	{"svg", "image/svg+xml"},
	{"tar", "application/x-tar"},
	{"tgz", "application/gzip"},
	{"tif", "image/tiff"},
	{"tiff", "image/tiff"},
	{"toml", "application/toml"},
	{"tsv", "text/tab-separated-values" UTF8},
	{"ttf", "font/ttf"},
	{"txt", "text/plain" UTF8},
	{"wasm", "application/wasm"},
	{"wav", "audio/vnd.wave"},
	{"webm", "video/webm"},
	{"webp", "image/webp"},
	{"woff2", "font/woff2"},
	{"xls", "application/vnd.ms-excel"},
	{"xlsx", "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet"},
	{"xml", "application/xml"},
	{"xz", "application/x-xz"},
	{"yaml", "application/yaml"},
	{"yml", "application/yaml"},
	{"zip", "application/zip"},
	{"zst", "application/zstd"},
};

const char *media_type(const char *name)
{
	const char *dot = strrchr(name, '.');
	for (size_t i = 0; dot != NULL && i < ARRAY_LEN(types); i++) {
		if (strcasecmp(dot + 1, types[i].extension) == 0)
			return types[i].type;
	}
	return MEDIA_UNKNOWN;
}

/* Text that is not text/...; those that are not listed are either binary or for no reader. */
static const char *const texts[] = {
	"application/json", "application/jsonl", "application/sql",          "application/toml",
	"application/xml",  "application/yaml",  "application/x-ipynb+json", "image/svg+xml",
};

bool media_is_text(const char *type)
{
	if (strncmp(type, "text/", 5) == 0)
		return true;
	for (size_t i = 0; i < ARRAY_LEN(texts); i++) {
		if (strcmp(type, texts[i]) == 0)
			return true;
	}
	return false;
}

bool media_is_known(const char *type)
{
	return strcmp(type, MEDIA_UNKNOWN) != 0;
}
