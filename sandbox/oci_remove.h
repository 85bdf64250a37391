/* sandbox/oci_remove.h: have podman or docker remove a container, until it is gone.
 *
 * A daemon that was asked to make a container makes it, whatever becomes of who asked:
 * told meanwhile to remove it, it knows of none. And what it says it has removed may
 * still be on its way out. So one process of its own goes on telling and asking, and
 * takes the note of the container away (place.h) when the engine lists it no more. What
 * it could not do is found by the next start, by that note.
 */
#ifndef KN_SANDBOX_OCI_REMOVE_H
#define KN_SANDBOX_OCI_REMOVE_H

#include <stdbool.h>

#include "sandbox/policy.h"

/* It has ended by then, with or without success. */
enum { KN_OCI_REMOVE_MS = 40000 };

struct kn_oci_removal {
	enum kn_runtime runtime; /* PODMAN or DOCKER */
	const char *program;
	const char *id;	  /* name of the container */
	const char *note; /* its path; made before the container was asked for */
	int client;   /* pidfd of the engine's client that asked, which is being killed;
			 -1: it is dead */
	bool settled; /* none can come any more: it was there, or was refused */
	bool refused; /* its client ended by itself, and it never was there */
};
/* A note's time is that of the clock that nobody can set: once when it is made. */
void kn_oci_remove_stamp(const char *note);
/* Begin to. Nobody has to wait for it: it is nobody's child that is waited for, and
 * holds no descriptor of ours. 0, or -1: no process could be started. */
int kn_oci_remove(const struct kn_oci_removal *r);

#endif
