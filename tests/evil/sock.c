/* tests/evil/sock.c: lies on the private socket: messages out of turn or malformed,
 * files that are no files, descriptors that nobody asked for, an end that is none. */
#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <string.h>
#include <sys/socket.h>

#include "evil.h"
#include "ipc/blob.h"
#include "ipc/control.h"
#include "ipc/fd.h"
#include "sandbox/stub/mounts.h"
#include "sandbox/stub/sys.h"

static struct {
	struct kn_msg m;
	uint8_t body[KN_MSG_BODY_MAX];
} out;

/* Send what stands in `out`, whatever its head says of its length. */
static void
put(struct kn_stub *s, size_t n, const int *fds, int fd_n)
{
	(void)kn_fd_send(s->sock, &out, n, fds, fd_n, 0);
}

static void
message(struct kn_stub *s, uint32_t type, uint32_t task, uint32_t gen, size_t body)
{
	out.m = (struct kn_msg){
		.type = type, .task = task, .gen = gen, .bytes = (uint32_t)body
	};
	put(s, sizeof out.m + body, NULL, 0);
}

/* ---- form ---- */

static void
boot_fail_noise(struct kn_stub *s)
{
	for (size_t i = 0; i < sizeof out.body; i++)
		out.body[i] = (uint8_t)evil_random();
	out.m = (struct kn_msg){ .type = KN_MSG_BOOT_FAIL,
		.arg = UINT32_MAX,
		.sys = UINT32_MAX,
		.bytes = sizeof out.body };
	put(s, sizeof out, NULL, 0);
	kn_serve_abandon(s);
}

static void
boot_fail_goes_on(struct kn_stub *s)
{
	message(s, KN_MSG_BOOT_FAIL, 0, 0, 0);
}

static void
files_before_ready(struct kn_stub *s)
{
	message(s, KN_MSG_FILES, 0, 1, 0);
}

static void
boot_fail_late(struct kn_stub *s)
{
	message(s, KN_MSG_BOOT_FAIL, 0, 0, 0);
}

static void
orders_the_supervisor(struct kn_stub *s)
{
	message(s, KN_MSG_KILL, 0, 1, 0);
}

static void
unknown_type(struct kn_stub *s)
{
	message(s, UINT32_MAX, 0, 0, 0);
}

static void
empty_message(struct kn_stub *s)
{
	put(s, 0, NULL, 0);
}

static void
half_a_head(struct kn_stub *s)
{
	out.m = (struct kn_msg){ .type = KN_MSG_FILES };
	put(s, 7, NULL, 0);
}

static void
wrong_bytes(struct kn_stub *s)
{
	out.m = (struct kn_msg){ .type = KN_MSG_FILES, .bytes = UINT32_MAX };
	put(s, sizeof out.m + 16, NULL, 0);
}

static void
too_long(struct kn_stub *s)
{
	static uint8_t large[sizeof out + 4096];

	(void)kn_fd_send(s->sock, large, sizeof large, NULL, 0, 0);
}

static void
noise_for_ever(struct kn_stub *s)
{
	for (;;) {
		for (size_t i = 0; i < 256; i++)
			((uint8_t *)&out)[i] = (uint8_t)evil_random();
		put(s, 1 + evil_random() % 256, NULL, 0);
	}
}

static void
empty_for_ever(struct kn_stub *s)
{
	for (;;)
		put(s, 0, NULL, 0);
}

/* ---- its end ---- */

static void
closes_and_goes_on(struct kn_stub *s)
{
	struct kn_slot_head h;
	struct kn_waiting w;

	(void)evil_claim(s, &w, &h);
	kn_sys_close(s->sock);
	evil_sleep();
}

static void
closes_at_start(struct kn_stub *s)
{
	kn_sys_close(s->sock);
	evil_sleep();
}

static void
closes_and_answers(struct kn_stub *s)
{
	uint8_t bytes[KN_INLINE_MAX];
	struct kn_slot_head h;
	struct kn_waiting w;

	(void)evil_claim(s, &w, &h);
	kn_sys_close(s->sock);
	evil_answer(&h, bytes, w.task, w.gen, 0);
	(void)evil_publish(s, &h, bytes);
	evil_sleep();
}

static void
shuts_its_ear(struct kn_stub *s)
{
	(void)KN_SYS2(SYS_shutdown, s->sock, SHUT_RD);
	evil_sleep();
}

static void
shuts_its_mouth(struct kn_stub *s)
{
	(void)KN_SYS2(SYS_shutdown, s->sock, SHUT_WR);
}

/* Never reads again: the supervisor's messages pile up. */
static void
reads_nothing(struct kn_stub *s)
{
	for (;;) {
		uint64_t word = __atomic_load_n(
		    &s->slice.control->submit_published, __ATOMIC_SEQ_CST);

		/* claims all there is, so that more comes */
		__atomic_store_n(
		    &s->slice.control->submit_claimed, word, __ATOMIC_SEQ_CST);
		evil_ring(s);
		evil_pause_ms(1);
	}
}

/* ---- files ---- */

struct record {
	const char *name;
	uint32_t what, refusal;
};

/* Claim the task that waits, which asked for the file f; say this; answer. */
static void
files(struct kn_stub *s, const struct record *r, uint32_t n, const int *fds, int fd_n,
    uint32_t told)
{
	struct kn_blob_w b = { .p = out.body, .cap = sizeof out.body };
	uint8_t bytes[KN_INLINE_MAX];
	struct kn_slot_head h;
	struct kn_waiting w;

	if (!evil_claim(s, &w, &h))
		return;
	for (uint32_t i = 0; i < n; i++) {
		kn_blob_str(&b, r[i].name);
		kn_blob_u32(&b, r[i].what);
		kn_blob_u32(&b, r[i].refusal);
	}
	out.m = (struct kn_msg){ .type = KN_MSG_FILES,
		.task = w.task,
		.gen = w.gen,
		.bytes = (uint32_t)b.n };
	put(s, sizeof out.m + b.n, fds, fd_n);
	for (int i = 0; i < w.fd_n; i++)
		kn_sys_close(w.fds[i]);
	evil_answer(&h, bytes, w.task, w.gen, told);
	(void)evil_publish(s, &h, bytes);
}

/* A file of a tmpfs of its own, size bytes long; -1: none to be had. */
static int
own_file(uint64_t size, int flags)
{
	int root = kn_mounts_task_fs(1 << 20, 16);
	int fd = kn_sys_openat(root, "f", O_RDWR | O_CREAT | O_CLOEXEC, 0644);

	if (fd < 0)
		return -1;
	/* ftruncate is not of the calls it has; a byte at the end does the same */
	if (size)
		(void)kn_sys_pwrite(fd, "x", 1, (int64_t)size - 1);
	if (flags == O_RDWR)
		return fd;
	kn_sys_close(fd);
	return kn_sys_openat(root, "f", flags | O_CLOEXEC, 0);
}

#define FILE_LIE(what, name_, kind, refusal_, fd_) \
	static void what(struct kn_stub *s) \
	{ \
		struct record r = { name_, kind, refusal_ }; \
		int fd = fd_; \
		files(s, &r, 1, &fd, fd >= 0, 1); \
	}
#define PLAIN own_file(3, O_RDONLY)
FILE_LIE(file_up, "../../../../../tmp/evil", KN_FILE_COLLECT, 0, PLAIN)
FILE_LIE(file_absolute, "/etc/evil", KN_FILE_COLLECT, 0, PLAIN)
FILE_LIE(file_dots, "a/../f", KN_FILE_COLLECT, 0, PLAIN)
FILE_LIE(file_nameless, "", KN_FILE_COLLECT, 0, PLAIN)
FILE_LIE(file_unasked_kept, "not-asked-for", KN_FILE_KEEP, 0, PLAIN)
FILE_LIE(file_unasked_out, "f", KN_FILE_OUT, 0, PLAIN)
FILE_LIE(file_what, "f", 8, 0, PLAIN)
FILE_LIE(file_refusal, "f", KN_FILE_COLLECT, 99, -1)
FILE_LIE(file_missing_fd, "f", KN_FILE_COLLECT, 0, -1)
FILE_LIE(file_writable, "f", KN_FILE_COLLECT, 0, own_file(3, O_RDWR))
FILE_LIE(file_path_only, "f", KN_FILE_COLLECT, 0, own_file(3, O_PATH))
FILE_LIE(file_folder, "f", KN_FILE_COLLECT, 0, kn_mounts_task_fs(1 << 20, 16))
FILE_LIE(file_host, "f", KN_FILE_COLLECT, 0,
    kn_sys_openat(-100, "/usr/bin/env", O_RDONLY | O_CLOEXEC, 0))
FILE_LIE(file_proc, "f", KN_FILE_COLLECT, 0,
    kn_sys_openat(-100, "/proc/self/mem", O_RDONLY | O_CLOEXEC, 0))
FILE_LIE(file_device, "f", KN_FILE_COLLECT, 0,
    kn_sys_openat(-100, "/dev/zero", O_RDONLY | O_CLOEXEC, 0))
FILE_LIE(file_pipe, "f", KN_FILE_COLLECT, 0, s->waiting[s->waiting_at].fds[0])
FILE_LIE(file_socket, "f", KN_FILE_COLLECT, 0, s->sock)
FILE_LIE(file_hole, "f", KN_FILE_COLLECT, 0, own_file(1ull << 42, O_RDONLY))
FILE_LIE(file_terminal, "\033]0;evil\007\n{\"id\":1}", KN_FILE_COLLECT, 0, PLAIN)

static void
file_twice(struct kn_stub *s)
{
	struct record r[2] = { { "f", KN_FILE_COLLECT, 0 },
		{ "f", KN_FILE_COLLECT, 0 } };
	int fds[2] = { PLAIN, PLAIN };

	files(s, r, 2, fds, 2, 2);
}

/* As many as there may be, each as large as /task: nothing but holes. */
static void
files_of_holes(struct kn_stub *s)
{
	struct kn_slot_head h;
	struct kn_waiting w;
	uint8_t bytes[KN_INLINE_MAX];
	int fd = own_file(200 << 20, O_RDONLY);

	if (fd < 0 || !evil_claim(s, &w, &h))
		return;
	for (uint32_t n = 0; n < 1000; n++) {
		struct kn_blob_w b = { .p = out.body, .cap = sizeof out.body };
		char name[4] = "aaa";

		for (int k = 0; k < 3; k++)
			name[k] = (char)('a' + (n >> 4 * k) % 16);
		kn_blob_str(&b, name);
		kn_blob_u32(&b, KN_FILE_COLLECT);
		kn_blob_u32(&b, KN_FILE_OK);
		out.m = (struct kn_msg){ .type = KN_MSG_FILES,
			.task = w.task,
			.gen = w.gen,
			.bytes = (uint32_t)b.n };
		put(s, sizeof out.m + b.n, &fd, 1);
	}
	evil_answer(&h, bytes, w.task, w.gen, 1000);
	(void)evil_publish(s, &h, bytes);
}

static void
file_fds_beyond(struct kn_stub *s)
{
	struct record r = { "f", KN_FILE_COLLECT, 0 };
	int fds[40];

	for (int i = 0; i < 40; i++)
		fds[i] = i == 0 ? PLAIN : s->sock;
	files(s, &r, 1, fds, 40, 1);
}

/* Small when it is looked at, and then it grows and shrinks without end. */
static void
file_changes(struct kn_stub *s)
{
	int root = kn_mounts_task_fs(64 << 20, 16), writer, reader;
	struct record r = { "f", KN_FILE_COLLECT, 0 };

	writer = kn_sys_openat(root, "f", O_RDWR | O_CREAT | O_CLOEXEC, 0644);
	reader = kn_sys_openat(root, "f", O_RDONLY | O_CLOEXEC, 0);
	(void)kn_sys_pwrite(writer, "abc", 3, 0);
	if (evil_fork() == 0) {
		for (unsigned i = 0; i < 200000; i++) {
			(void)kn_sys_pwrite(
			    writer, "x", 1, (int64_t)(evil_random() % (60u << 20)));
			kn_sys_close(kn_sys_openat(
			    root, "f", O_WRONLY | O_TRUNC | O_CLOEXEC, 0));
		}
		kn_sys_exit(0);
	}
	files(s, &r, 1, &reader, 1, 1);
}

static void
files_without_end(struct kn_stub *s)
{
	struct kn_slot_head h;
	struct kn_waiting w;
	uint32_t n = 0;

	if (!evil_claim(s, &w, &h))
		return;
	for (;;) {
		struct kn_blob_w b = { .p = out.body, .cap = sizeof out.body };
		char name[9] = "aaaaaaaa";

		for (int k = 0; k < 8; k++)
			name[k] = (char)('a' + (n >> 4 * k) % 16);
		n++;
		kn_blob_str(&b, name);
		kn_blob_u32(&b, KN_FILE_COLLECT);
		kn_blob_u32(&b, KN_FILE_IO);
		out.m = (struct kn_msg){ .type = KN_MSG_FILES,
			.task = w.task,
			.gen = w.gen,
			.bytes = (uint32_t)b.n };
		put(s, sizeof out.m + b.n, NULL, 0);
	}
}

static void
files_of_another(struct kn_stub *s)
{
	const struct kn_waiting *w = &s->waiting[s->waiting_at];

	out.m = (struct kn_msg){
		.type = KN_MSG_FILES, .task = w->task + 1, .gen = w->gen, .bytes = 16
	};
	put(s, sizeof out.m + 16, NULL, 0);
}

static void
files_noise(struct kn_stub *s)
{
	struct kn_slot_head h;
	struct kn_waiting w;

	if (!evil_claim(s, &w, &h))
		return;
	for (size_t i = 0; i < 4096; i++)
		out.body[i] = (uint8_t)evil_random();
	out.m = (struct kn_msg){
		.type = KN_MSG_FILES, .task = w.task, .gen = w.gen, .bytes = 4096
	};
	put(s, sizeof out.m + 4096, NULL, 0);
}

static void
pty_unasked(struct kn_stub *s)
{
	struct kn_slot_head h;
	struct kn_waiting w;

	if (!evil_claim(s, &w, &h))
		return;
	out.m = (struct kn_msg){ .type = KN_MSG_PTY, .task = w.task, .gen = w.gen };
	put(s, sizeof out.m, &w.fds[0], 1);
}

/* ---- the task's streams ---- */

/* Answers, and writes on: the supervisor must not read for ever. */
static void
output_after_the_answer(struct kn_stub *s)
{
	static uint8_t page[65536];
	uint8_t bytes[KN_INLINE_MAX];
	struct kn_slot_head h;
	struct kn_waiting w;

	if (!evil_claim(s, &w, &h))
		return;
	for (int i = 0; i < 2; i++)
		if (evil_fork() == 0)
			for (;;)
				(void)kn_sys_write(w.fds[1 + i], page, sizeof page);
	evil_pause_ms(50);
	evil_answer(&h, bytes, w.task, w.gen, 0);
	(void)evil_publish(s, &h, bytes);
	evil_pause_ms(500);
	kn_serve_abandon(s);
}

/* Says nothing, and lets the task's output run for ever. */
static void
output_without_end(struct kn_stub *s)
{
	static uint8_t page[65536];
	struct kn_slot_head h;
	struct kn_waiting w;

	if (evil_claim(s, &w, &h))
		for (;;)
			(void)kn_sys_write(w.fds[1], page, sizeof page);
}

const struct evil_lie evil_sock_lies[] = {
	{ "boot-fail-noise", EVIL_START, boot_fail_noise },
	{ "boot-fail-goes-on", EVIL_START, boot_fail_goes_on },
	{ "files-before-ready", EVIL_START, files_before_ready },
	{ "closes-at-start", EVIL_START, closes_at_start },
	{ "boot-fail-late", EVIL_TASK, boot_fail_late },
	{ "orders-the-supervisor", EVIL_TASK, orders_the_supervisor },
	{ "unknown-type", EVIL_TASK, unknown_type },
	{ "empty-message", EVIL_TASK, empty_message },
	{ "half-a-head", EVIL_TASK, half_a_head },
	{ "wrong-bytes", EVIL_TASK, wrong_bytes },
	{ "too-long", EVIL_TASK, too_long },
	{ "noise-for-ever", EVIL_TASK, noise_for_ever },
	{ "empty-for-ever", EVIL_TASK, empty_for_ever },
	{ "closes-and-goes-on", EVIL_TASK, closes_and_goes_on },
	{ "closes-and-answers", EVIL_TASK, closes_and_answers },
	{ "shuts-its-ear", EVIL_TASK, shuts_its_ear },
	{ "shuts-its-mouth", EVIL_TASK, shuts_its_mouth },
	{ "reads-nothing", EVIL_TASK, reads_nothing },
	{ "file-up", EVIL_TASK, file_up },
	{ "file-absolute", EVIL_TASK, file_absolute },
	{ "file-dots", EVIL_TASK, file_dots },
	{ "file-nameless", EVIL_TASK, file_nameless },
	{ "file-unasked-kept", EVIL_TASK, file_unasked_kept },
	{ "file-unasked-out", EVIL_TASK, file_unasked_out },
	{ "file-what", EVIL_TASK, file_what },
	{ "file-refusal", EVIL_TASK, file_refusal },
	{ "file-missing-fd", EVIL_TASK, file_missing_fd },
	{ "file-writable", EVIL_TASK, file_writable },
	{ "file-path-only", EVIL_TASK, file_path_only },
	{ "file-folder", EVIL_TASK, file_folder },
	{ "file-host", EVIL_TASK, file_host },
	{ "file-proc", EVIL_TASK, file_proc },
	{ "file-device", EVIL_TASK, file_device },
	{ "file-pipe", EVIL_TASK, file_pipe },
	{ "file-socket", EVIL_TASK, file_socket },
	{ "file-hole", EVIL_TASK, file_hole },
	{ "file-terminal", EVIL_TASK, file_terminal },
	{ "file-twice", EVIL_TASK, file_twice },
	{ "files-of-holes", EVIL_TASK, files_of_holes },
	{ "file-fds-beyond", EVIL_TASK, file_fds_beyond },
	{ "file-changes", EVIL_TASK, file_changes },
	{ "files-without-end", EVIL_TASK, files_without_end },
	{ "files-of-another", EVIL_TASK, files_of_another },
	{ "files-noise", EVIL_TASK, files_noise },
	{ "pty-unasked", EVIL_TASK, pty_unasked },
	{ "output-after-the-answer", EVIL_TASK, output_after_the_answer },
	{ "output-without-end", EVIL_TASK, output_without_end },
	{ NULL, EVIL_START, NULL },
};
