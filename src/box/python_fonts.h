/*
 * matplotlib's list of fonts, made ahead and copied into sandboxes: their first plot would spend up
 * to a second on it. And settings that name fonts with more letters than its own. Both are made on
 * the host, where nobody's code runs, in the spool's fonts/.
 */
#ifndef SPOOLBOX_BOX_PYTHON_FONTS_H
#define SPOOLBOX_BOX_PYTHON_FONTS_H

#include "box/app.h"

/* Starts the program that makes the list, unless it was started since matplotlib or the fonts of
 * this machine last changed. Does not wait for it; failures are logged. */
void python_fonts_refresh(const struct app *app);

#endif
