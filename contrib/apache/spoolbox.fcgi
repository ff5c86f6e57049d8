#!/bin/sh
# Starts the program on a hosting account; see the file htaccess. The settings file holds at least
# SMCP_TOKEN, SMCP_SPOOL and SMCP_PUBLIC_BASE_URL, and nobody else may read it.
SMCP_ENV_FILE=/home/you/spoolbox.env
export SMCP_ENV_FILE
exec /home/you/libexec/spoolbox/spoolbox.fcgi
