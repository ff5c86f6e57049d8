#!/bin/sh
claude mcp add --transport http spoolbox https://your.host/mcp --header "Authorization: Bearer YOUR-TOKEN"
