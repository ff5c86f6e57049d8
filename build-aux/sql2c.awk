# Turns sql/NNN_topic.sql files (in order) into one C array of texts, so that the program and
# its schema cannot differ.
function flush_step() { if (open) print "\t," }
BEGIN { print "/* Made from sql/ by build-aux/sql2c.awk. */\n#include \"store/schema.h\"\n\nconst char *const schema_steps[] = {" }
FNR == 1 { flush_step(); open = 1 }
{ gsub(/\\/, "\\\\"); gsub(/"/, "\\\""); print "\t\"" $0 "\\n\"" }
END { flush_step(); print "};\n\nconst int schema_step_count = sizeof(schema_steps) / sizeof(schema_steps[0]);" }
