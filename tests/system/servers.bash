# Web servers of their own in system tests, set up by the files of contrib/ with only their paths and
# their port changed, and run as the ordinary user. To be loaded after harness.
#
#	setup_file() { harness_open && servers_open; }
#	setup() { servers_setup; }
#	teardown() { stop_server; }

servers_open() {
	mkdir -p "$TEST_DIR/run" "$TEST_DIR/www"
	chown "$TEST_USER" "$TEST_DIR/run" "$TEST_DIR/www" 2>/dev/null || true
	PORT=1 URL='' SERVICE='' SETTINGS=(SMCP_SPOOL="$SPOOL" SMCP_TOKEN="$TOKEN")
	save_state
}

servers_setup() {
	load_state
	PORT=$(free_port)
	URL=http://127.0.0.1:$PORT
	RUN=$TEST_DIR/run
	printf 'SMCP_TOKEN=%s\nSMCP_SPOOL=%s\nSMCP_PUBLIC_BASE_URL=%s\nSMCP_MIN_FREE_BYTES=1m\n' \
		"$TOKEN" "$SPOOL" "$URL${PREFIX:-}" >"$TEST_DIR/spoolbox.env"
	chmod 644 "$TEST_DIR/spoolbox.env"
}

# Ends the server and waits for its workers.
stop_server() {
	[ -z "${SERVER:-}" ] || { kill "$SERVER" 2>/dev/null; wait_gone "$SERVER"; }
	local i
	for ((i = 0; i < 100; i++)); do [ -z "$(workers)" ] && break; sleep 0.1; done
}

# Puts our paths in place of the documented ones.
adapt() {
	sed -e "s#/usr/local/libexec/spoolbox#$BIN#g" -e "s#/var/lib/spoolbox#$SPOOL#g" \
		-e "s#/etc/spoolbox.env#$TEST_DIR/spoolbox.env#g" -e "s#/run/spoolbox#$RUN#g" \
		-e "s#/run/lighttpd#$RUN#g" -e "s#\b8000\b#$PORT#g" \
		"$srcdir/contrib/$1"
}

serve_with() {
	(exec_as_user SMCP_ENV_FILE="$TEST_DIR/spoolbox.env" "$@") >>"$TEST_DIR/log" 2>&1 3>&- &
	SERVER=$!
	local i
	for ((i = 0; i < 100; i++)); do
		[ "$(curl -s -m 5 "$URL${PREFIX:-}/healthz")" = '{"ok":true}' ] && return 0
		kill -0 "$SERVER" 2>/dev/null || break
		sleep 0.1
	done
	cat "$TEST_DIR/log" "$RUN/error.log" 2>/dev/null | tail -40 >&2
	return 1
}

need_lighttpd() { command -v lighttpd >/dev/null || skip_or_fail "lighttpd is not installed"; }
need_apache() {
	command -v apache2 >/dev/null || skip_or_fail "apache2-bin is not installed"
	[ -f /usr/lib/apache2/modules/mod_fcgid.so ] || skip_or_fail "libapache2-mod-fcgid is not installed"
}
# What Debian's own apache2.conf and mods-enabled bring, for files that are included in it.
apache_base() {
	cat <<-X
		ServerName localhost
		Listen 127.0.0.1:$PORT
		DefaultRuntimeDir $RUN
		PidFile $RUN/httpd.pid
		Mutex file:$RUN default
		ErrorLog $RUN/error.log
		TypesConfig /etc/mime.types
		DocumentRoot $TEST_DIR/www
		FcgidIPCDir $RUN
		FcgidProcessTableFile $RUN/fcgid_shm
		<Directory />
			Require all denied
			AllowOverride None
		</Directory>
	X
}
apache_modules() {
	local module
	echo "ServerRoot /usr/lib/apache2"
	for module in mpm_event authz_core alias env mime setenvif rewrite headers fcgid; do
		echo "LoadModule ${module}_module modules/mod_$module.so"
	done
}
