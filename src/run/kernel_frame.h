/*
 * Frames of a watcher (kernel.h), put together from packets, checked and added to a result. Nothing
 * that a peer sends is an error: what is not as it should be is dropped, and the result says so.
 */
#ifndef SPOOLBOX_RUN_KERNEL_FRAME_H
#define SPOOLBOX_RUN_KERNEL_FRAME_H

#include "run/kernel.h"

struct kernel_frames {
	struct kernel_run *run;
	int64_t image_bytes; /* that may still come */
	size_t total;        /* bytes of payload seen */
	char letter;         /* of a frame that is not complete; 0: none */
	bool dropping;       /* the rest of it is not looked at */
	struct buf payload;
	bool ended; /* KERNEL_FRAME_END came: nothing else counts any more */
};

/* Results go to run, which is borrowed. */
void kernel_frames_init(struct kernel_frames *frames, struct kernel_run *run, int64_t image_bytes);
void kernel_frames_finish(struct kernel_frames *frames);
#define AUTO_KERNEL_FRAMES __attribute__((cleanup(kernel_frames_finish))) struct kernel_frames

/* Takes one packet. len beyond KERNEL_PACKET_MAX: only that much of it is there. */
void kernel_frames_add(struct kernel_frames *frames, const char *packet, size_t len);

#endif
