#!/usr/bin/env bats
# A real job with real files: a PDF and a CSV are uploaded by link, worked on in a sandbox by a
# script that was written there, and the results come back by link. The right answers are worked
# out here, by other means.

load harness

setup_file() { harness_open && start_service; }
teardown_file() { harness_close; }
setup() { load_state; }

PDF_PACKAGE=libtasn1-doc
CSV_PACKAGE=distro-info-data
CSV_PATTERN='/debian\.csv$'
CSV_SCRIPT='import csv, json, sys
rows = list(csv.DictReader(open(sys.argv[1])))
years = [int(row["release"][:4]) for row in rows if row["release"]]
print(json.dumps({"rows": len(rows), "released": len(years), "year_sum": sum(years),
                  "letters": sum(len(row["codename"]) for row in rows)}))
'

csv_by_awk() {
	awk -F, 'NR > 1 { rows++; letters += length($2); if ($5 != "") { released++; sum += substr($5, 1, 4) } }
		END { printf "{\"letters\":%d,\"released\":%d,\"rows\":%d,\"year_sum\":%d}\n", letters, released, rows, sum }' "$1"
}

# The first file of a Debian package that contrib/check installs.
from_package() {
	local path
	for path in $(dpkg -L "$1" 2>/dev/null | grep -E "$2"); do
		[ -f "$path" ] && echo "$path" && return
	done
}

@test "the word count of a PDF manual is worked out in the sandbox" {
	pdf=$(from_package "$PDF_PACKAGE" '\.pdf(\.gz)?$')
	[ -n "$pdf" ] || skip_or_fail "the package $PDF_PACKAGE is not installed"
	command -v pdftotext >/dev/null || skip_or_fail "poppler-utils is not installed"
	case $pdf in *.gz) gzip -dc "$pdf" ;; *) cat "$pdf" ;; esac >"$TEST_DIR/manual.pdf"
	[[ $(http_status -T "$TEST_DIR/manual.pdf" "$(upload_url office in/manual.pdf)") == 20[01] ]]
	call write_text "$(jq -cn --arg c 'set -e
mkdir -p out
pdftotext -layout "$1" - | tr -s "[:space:]" "\n" | grep -c . > out/words
' '{sandbox:"office",path:"count.sh",content:$c,executable:true}')" >/dev/null
	equal "$(field .exit_code "$(run_in office 'bash count.sh in/manual.pdf')")" 0
	curl -s -o "$TEST_DIR/words" "$(download_url office out/words)"
	pdftotext -layout "$TEST_DIR/manual.pdf" "$TEST_DIR/manual.txt"
	[ "$(cat "$TEST_DIR/words")" -gt 100 ]
	equal "$(cat "$TEST_DIR/words")" "$(wc -w <"$TEST_DIR/manual.txt")"
}

@test "the sums of a CSV table are worked out in the sandbox with Python" {
	csv=$(from_package "$CSV_PACKAGE" "$CSV_PATTERN")
	[ -n "$csv" ] || skip_or_fail "the package $CSV_PACKAGE is not installed"
	cp "$csv" "$TEST_DIR/table.csv"
	[[ $(http_status -T "$TEST_DIR/table.csv" "$(upload_url office in/table.csv)") == 20[01] ]]
	call write_text "$(jq -cn --arg c "$CSV_SCRIPT" '{sandbox:"office",path:"sum.py",content:$c}')" >/dev/null
	result=$(run_in office 'python3 sum.py in/table.csv > sums.json')
	equal "$(field .exit_code "$result")" 0
	equal "$(curl -s "$(download_url office sums.json)" | jq -Sc .)" "$(csv_by_awk "$TEST_DIR/table.csv")"
}
