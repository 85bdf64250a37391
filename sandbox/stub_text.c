/* sandbox/stub_text.c: see stub_text.h. */
#include "sandbox/stub_text.h"

#include <elf.h>
#include <stddef.h>
#include <string.h>

#include "ipc/err.h"

/* Embedded by the linker (Makefile). */
extern const char kn_stub_image[], kn_stub_image_end[];

int
kn_stub_text(uint64_t *out_from, uint64_t *out_to, struct kn_err *e)
{
	size_t n = (size_t)(kn_stub_image_end - kn_stub_image);
	Elf64_Ehdr h;
	Elf64_Phdr p;

	memcpy(&h, kn_stub_image, sizeof h);
	for (unsigned i = 0; h.e_type == ET_EXEC && i < h.e_phnum; i++) {
		uint64_t at = h.e_phoff + (uint64_t)i * sizeof p;

		if (at > n - sizeof p)
			break;
		memcpy(&p, kn_stub_image + at, sizeof p);
		if (p.p_type != PT_LOAD || !(p.p_flags & PF_X) || p.p_memsz == 0 ||
		    p.p_vaddr + p.p_memsz > UINT32_MAX)
			continue;
		*out_from = p.p_vaddr;
		*out_to = p.p_vaddr + p.p_memsz;
		return 0;
	}
	return kn_err_set(e, KN_EK_BUG, "knit-worker is not linked to a fixed place");
}
