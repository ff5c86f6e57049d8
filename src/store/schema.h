/* The steps of sql/, in order; schema.c is made from them at build time. Step n (from 1) takes
 * a database of user_version n - 1 to n. */
#ifndef SPOOLBOX_STORE_SCHEMA_H
#define SPOOLBOX_STORE_SCHEMA_H

extern const char *const schema_steps[];
extern const int schema_step_count;

#endif
