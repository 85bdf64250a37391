/* tests/unit/test_sandbox_policy_files.c: filesystem.read, write and deny: what an
 * entry may look like, what a pattern means, and which mounts come of a policy.
 */
#include "policy_test.h"

#include "sandbox/policy_files.h"

static char root[64];

static void
make_file(const char *name)
{
	char path[128];
	int fd;

	snprintf(path, sizeof path, "%s/%s", root, name);
	fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0644);
	assert_true(fd >= 0);
	close(fd);
}

static const char *const tree_dirs[] = { "proj", "proj/sub", "proj/sub/deep", "data" };
static const char *const tree_files[] = { "proj/.env", "proj/pub", "proj/sub/deep/.env",
	"data/a.csv", "data/.b.csv", "data/c.key" };

static int
make_tree(void **state)
{
	char path[128];

	if (make_dir(state) < 0)
		return -1;
	snprintf(root, sizeof root, "/var/tmp/knit-files-XXXXXX");
	if (!mkdtemp(root))
		return -1;
	for (size_t i = 0; i < sizeof tree_dirs / sizeof *tree_dirs; i++) {
		snprintf(path, sizeof path, "%s/%s", root, tree_dirs[i]);
		assert_int_equal(mkdir(path, 0755), 0);
	}
	for (size_t i = 0; i < sizeof tree_files / sizeof *tree_files; i++)
		make_file(tree_files[i]);
	snprintf(path, sizeof path, "%s/link", root);
	assert_int_equal(symlink("data", path), 0);
	snprintf(path, sizeof path, "%s/proj/hook", root);
	return symlink("pub", path);
}

static int
remove_tree(void **state)
{
	char path[128];

	snprintf(path, sizeof path, "%s/link", root);
	unlink(path);
	snprintf(path, sizeof path, "%s/proj/hook", root);
	unlink(path);
	for (size_t i = 0; i < sizeof tree_files / sizeof *tree_files; i++) {
		snprintf(path, sizeof path, "%s/%s", root, tree_files[i]);
		unlink(path);
	}
	for (size_t i = sizeof tree_dirs / sizeof *tree_dirs; i-- > 0;) {
		snprintf(path, sizeof path, "%s/%s", root, tree_dirs[i]);
		rmdir(path);
	}
	rmdir(root);
	return remove_dir(state);
}

/* ---- texts ---- */

static void
an_entry_that_cannot_be_kept_is_named(void **state)
{
	static const struct {
		const char *entry;
		bool deny;
		const char *fault; /* NULL: fine */
	} cases[] = {
		{ "/data", false, NULL },
		{ "a b/c", false, NULL },
		{ "~", false, NULL },
		{ "~/.ssh", true, NULL },
		{ "/data/*.csv", false, NULL },
		{ "src/**/*.c", false, NULL },
		{ "**/.env", true, NULL },
		{ "**/.env", false, "name the folder" },
		{ "", true, "empty" },
		{ "~root/x", true, "another user" },
		{ "!/data", true, "taken out" },
		{ "./!x", true, NULL },
		{ "a/{b,c}", true, "braces" },
		{ "a/\\{b", true, NULL },
		{ "a/**b", true, "whole folders" },
		{ "a/*/../b", true, "\"..\"" },
		{ "a/../b", true, NULL },
		{ "**/**/**/**/x", true, "three times" },
	};

	(void)state;
	setenv("HOME", "/h", 1);
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		const char *fault = kn_fpath_fault(cases[i].entry, cases[i].deny);

		if (!fault != !cases[i].fault ||
		    (fault && !strstr(fault, cases[i].fault)))
			fail_msg("\"%s\": %s", cases[i].entry, fault ? fault : "fine");
	}
	unsetenv("HOME");
	assert_non_null(strstr(kn_fpath_fault("~/x", true), "HOME"));
}

static void
an_entry_is_made_absolute(void **state)
{
	static const struct {
		const char *dir, *entry, *want;
	} cases[] = {
		{ "/p", "a", "/p/a" },
		{ "/p", "./a/", "/p/a" },
		{ "/p", "../a//b", "/a/b" },
		{ "/p", "/a/.", "/a" },
		{ "/p", "/", "/" },
		{ "/p", "~", "/h/[u]" },
		{ "/p", "~/.ssh", "/h/\\[u]/.ssh" },
		{ "/p[1]", "*.c", "/p\\[1]/*.c" },
		{ "/p", "**/./.env", "**/.env" },
	};

	(void)state;
	setenv("HOME", "/h/[u]", 1);
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		char *got = kn_fpath_absolute(cases[i].dir, cases[i].entry, true);

		assert_non_null(got);
		if (!kn_fpath_is_pattern(got) && strchr(got, '\\'))
			kn_fpath_plain(got);
		if (strcmp(got, cases[i].want) != 0 &&
		    strcmp(cases[i].entry, "~/.ssh") != 0)
			fail_msg("\"%s\": \"%s\"", cases[i].entry, got);
		free(got);
	}
}

static void
a_pattern_means_what_it_should(void **state)
{
	static const struct {
		const char *pattern, *path;
		enum kn_fpath_hit deny, read;
	} cases[] = {
		{ "/a/*.c", "/a/x.c", KN_FPATH_THIS, KN_FPATH_THIS },
		{ "/a/*.c", "/a/.x.c", KN_FPATH_THIS, KN_FPATH_NO },
		{ "/a/*.c", "/a", KN_FPATH_BELOW, KN_FPATH_BELOW },
		{ "/a/*.c", "/", KN_FPATH_BELOW, KN_FPATH_BELOW },
		{ "/a/*.c", "/b", KN_FPATH_NO, KN_FPATH_NO },
		{ "/a/*.c", "/a/d/x.c", KN_FPATH_NO, KN_FPATH_NO },
		{ "/a/**/x", "/a/x", KN_FPATH_THIS, KN_FPATH_THIS },
		{ "/a/**/x", "/a/b/c/x", KN_FPATH_THIS, KN_FPATH_THIS },
		{ "/a/**/x", "/a/.b/x", KN_FPATH_THIS, KN_FPATH_NO },
		{ "/a/**/x", "/a/b", KN_FPATH_BELOW, KN_FPATH_BELOW },
		{ "/a/**", "/a", KN_FPATH_BELOW, KN_FPATH_BELOW },
		{ "/a/**", "/a/b/c", KN_FPATH_THIS, KN_FPATH_THIS },
		{ "**/.env", "/p/.env", KN_FPATH_THIS, KN_FPATH_THIS },
		{ "**/.env", "/.env", KN_FPATH_THIS, KN_FPATH_THIS },
		{ "**/.env", "/p/.envx", KN_FPATH_BELOW, KN_FPATH_NO },
		{ "**/a/**/b", "/x/a/y/z/b", KN_FPATH_THIS, KN_FPATH_THIS },
		{ "/a/[bc]", "/a/b", KN_FPATH_THIS, KN_FPATH_THIS },
		{ "/a/\\*", "/a/*", KN_FPATH_THIS, KN_FPATH_THIS },
		{ "/a/\\*", "/a/b", KN_FPATH_NO, KN_FPATH_NO },
	};

	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
		if (kn_fpath_match(cases[i].pattern, cases[i].path, true) !=
			cases[i].deny ||
		    kn_fpath_match(cases[i].pattern, cases[i].path, false) !=
			cases[i].read)
			fail_msg(
			    "\"%s\" against \"%s\"", cases[i].pattern, cases[i].path);
}

/* ---- mounts ---- */

static struct kn_policy *
load(const char *filesystem)
{
	char text[1024];

	snprintf(text, sizeof text, "{\"version\":1,\"filesystem\":{%s}}", filesystem);
	return LOAD(NAMED(file("a.json", text)));
}

static void
refused_fs(const char *filesystem, const char *piece)
{
	char text[1024];
	struct kn_policy_src src = NAMED(NULL);

	snprintf(text, sizeof text, "{\"version\":1,\"filesystem\":{%s}}", filesystem);
	src.text = file("a.json", text);
	refused_n(&src, 1, PIECES(piece));
}

/* The mount at root/name, of that type and writable or not. */
static bool
has(const struct kn_policy *p, enum kn_mount_type type, const char *name, bool writable)
{
	char at[128];

	snprintf(at, sizeof at, "%s/%s", root, name);
	for (size_t i = 0; i < p->fs.mount_n; i++) {
		const struct kn_mount *m = &p->fs.mounts[i];

		if (m->type == type && strcmp(m->at, at) == 0 &&
		    m->writable == writable)
			return true;
	}
	return false;
}

static const char *
fill(const char *format)
{
	static char text[1024];
	size_t n = 0;

	for (; *format && n < sizeof text - sizeof root; format++) {
		if (*format == '@')
			n += (size_t)snprintf(text + n, sizeof text - n, "%s", root);
		else
			text[n++] = *format;
	}
	text[n] = 0;
	return text;
}

static void
read_and_write_are_binds_at_the_same_place(void **state)
{
	struct kn_policy *p =
	    load(fill("\"read\":[\"@/data\"],\"write\":[\"@/proj\"]"));

	(void)state;
	assert_true(has(p, KN_MOUNT_BIND, "data", false));
	assert_true(has(p, KN_MOUNT_BIND, "proj", true));
	kn_policy_free(p);
	p = load(fill("\"read\":[\"@/data/*.csv\"]"));
	assert_true(has(p, KN_MOUNT_BIND, "data/a.csv", false));
	assert_false(has(p, KN_MOUNT_BIND, "data/.b.csv", false));
	assert_false(has(p, KN_MOUNT_BIND, "data/c.key", false));
	kn_policy_free(p);
	refused_fs(fill("\"read\":[\"@/data/*.zip\"]"), "means no file");
	refused_fs("\"read\":[\"/proc/self\"]", "/filesystem/read/0");
}

static void
a_link_on_the_way_is_made_again(void **state)
{
	struct kn_policy *p = load(fill("\"read\":[\"@/link/a.csv\"]"));

	(void)state;
	assert_true(has(p, KN_MOUNT_SYMLINK, "link", false));
	assert_true(has(p, KN_MOUNT_BIND, "data/a.csv", false));
	kn_policy_free(p);
	/* What a wider bind shows already is left out. */
	p = load(fill("\"read\":[\"@\",\"@/link/a.csv\"]"));
	assert_false(has(p, KN_MOUNT_SYMLINK, "link", false));
	assert_false(has(p, KN_MOUNT_BIND, "data/a.csv", false));
	kn_policy_free(p);
}

static void
deny_is_a_mask_wherever_a_bind_shows_it(void **state)
{
	struct kn_policy *p =
	    load(fill("\"deny\":[\"**/.env\",\"@/data/*.key\"],\"read\":[\"@\"]"));

	(void)state;
	assert_true(has(p, KN_MOUNT_MASK, "proj/.env", false));
	assert_true(has(p, KN_MOUNT_MASK, "proj/sub/deep/.env", false));
	assert_true(has(p, KN_MOUNT_MASK, "data/c.key", false));
	assert_false(has(p, KN_MOUNT_MASK, "data/a.csv", false));
	kn_policy_free(p);
	/* By another name, and as a place inside. */
	p = load(fill("\"mounts\":[{\"bind\":\"@/data\",\"at\":\"/d\"}],"
		      "\"deny\":[\"@/link/a.csv\",\"/d/c.key\"]"));
	assert_non_null(mount_at(p, "/d/a.csv"));
	assert_non_null(mount_at(p, "/d/c.key"));
	kn_policy_free(p);
	/* All of a bind, and of the system root. */
	p = load(fill("\"read\":[\"@/proj\"],\"deny\":[\"@\",\"/etc/passwd\"]"));
	assert_true(has(p, KN_MOUNT_MASK, "proj", false));
	for (size_t i = 0; i < p->fs.mount_n; i++)
		assert_string_not_equal(p->fs.mounts[i].at, "/etc/passwd");
	kn_policy_free(p);
}

static void
deny_in_a_writable_bind_holds_its_folders(void **state)
{
	struct kn_policy *p = load(fill("\"write\":[\"@/proj\"],\"deny\":[\"@/proj/sub/"
					"deep/.env\",\"@/proj/hook\"]"));

	(void)state;
	assert_true(has(p, KN_MOUNT_MASK, "proj/sub/deep/.env", true));
	assert_true(has(p, KN_MOUNT_BIND, "proj/sub", true));
	assert_true(has(p, KN_MOUNT_BIND, "proj/sub/deep", true));
	assert_true(has(p, KN_MOUNT_LINK, "proj/hook", false));
	assert_true(has(p, KN_MOUNT_MASK, "proj/pub", true));
	kn_policy_free(p);
	p = load(fill("\"write\":[\"@/proj\"],\"read\":[\"@/proj/sub/deep\"]"));
	assert_true(has(p, KN_MOUNT_BIND, "proj/sub", true));
	kn_policy_free(p);
}

static bool
is_pinned(const struct kn_policy *p, const char *at)
{
	const struct kn_mount *m = mount_at(p, at);

	return m && m->pin;
}

static void
a_mount_in_a_writable_bind_holds_its_folders(void **state)
{
	struct kn_policy *p = load(fill("\"write\":[\"@/proj\",\"@/proj/sub/deep\"]"));

	(void)state;
	assert_true(has(p, KN_MOUNT_BIND, "proj/sub", true));
	assert_false(has(p, KN_MOUNT_BIND, "data", true));
	kn_policy_free(p);
	/* Each bind that shows the way to it, also by another path than it is at. */
	p = load(fill("\"mounts\":[{\"bind\":\"@\",\"at\":\"/v\",\"mode\":\"rw\"},"
		      "{\"bind\":\"@/proj\",\"at\":\"/p\"},"
		      "{\"bind\":\"@/data\",\"at\":\"/p/sub/deep\"}]"));
	assert_true(is_pinned(p, "/v/proj"));
	assert_true(is_pinned(p, "/v/proj/sub"));
	assert_null(mount_at(p, "/p/sub")); /* nothing is moved there */
	assert_null(mount_at(p, "/v/data"));
	kn_policy_free(p);
	/* What is beside is left alone, and so is all with a launcher that mounts
	 * nothing. */
	p = load(fill("\"mounts\":[{\"bind\":\"@\",\"at\":\"/v\",\"mode\":\"rw\"},"
		      "{\"bind\":\"@/proj\",\"at\":\"/p\"}]"));
	assert_null(mount_at(p, "/v/proj"));
	kn_policy_free(p);
	p = LOAD(NAMED(file("a.json",
		     fill("{\"version\":1,\"filesystem\":{\"write\":[\"@/proj\","
			  "\"@/proj/sub/deep\"]}}"))),
	    SET("/launcher/type=direct"));
	assert_false(has(p, KN_MOUNT_BIND, "proj/sub", true));
	kn_policy_free(p);
}

/* base: of a file that is extended; more: a flag that comes after it. */
static void
undone(
    const char *base, const char *pointer, const char *more, const char *const *pieces)
{
	char text[1024];
	struct kn_policy_src src[2] = { NAMED(NULL), VALUE(pointer, NULL) };

	snprintf(text, sizeof text, "%s", fill(base));
	src[0].text = file("a.json", text);
	src[1].text = fill(more);
	refused_n(src, 2, pieces);
}

static void
a_list_does_not_undo_what_a_later_document_says(void **state)
{
	static const char ro[] = "[{\"bind\":\"@/data\"}]";
	static const char rw[] = "[{\"bind\":\"@/data\",\"mode\":\"rw\"}]";
	static const char writes[] =
	    "{\"version\":1,\"filesystem\":{\"write\":[\"@/data\"]}}";
	static const char reads[] =
	    "{\"version\":1,\"filesystem\":{\"read\":[\"@/data\"]}}";
	static const char all[] =
	    "{\"version\":1,\"filesystem\":{\"read\":[\"@/data\"],"
	    "\"write\":[\"@/dat[a]\"],\"mounts\":[{\"bind\":\"@/data\"}]}}";
	char text[1024];
	struct kn_policy *p;

	(void)state;
	undone(writes, "/filesystem/mounts", ro,
	    PIECES("/filesystem/write/0", "writable", "--flag"));
	undone(writes, "/filesystem/read", "[\"@/data\"]",
	    PIECES("/filesystem/write/0", "--flag"));
	undone(writes, "/filesystem/mounts", "[{\"dir\":\"@/data\"}]",
	    PIECES("/filesystem/write/0"));
	undone(writes, "/filesystem/mounts", "[{\"overlay\":\"@/data\"}]",
	    PIECES("/filesystem/write/0"));
	undone(all, "/filesystem/mounts", ro, PIECES("/filesystem/write/0"));
	undone("{\"version\":1,\"permissions\":{\"write\":[\"@/data\"]}}",
	    "/filesystem/mounts", ro, PIECES("/permissions/write/0"));
	undone("{\"version\":1,\"permissions\":{\"mode\":\"project\",\"project\":"
	       "\"@/data\"}}",
	    "/filesystem/mounts", ro, PIECES("/permissions/project"));
	undone(reads, "/filesystem/mounts", rw,
	    PIECES("/filesystem/read/0", "read-only", "--flag"));
	/* The later one that comes later in the lists, too; two that say the same; and
	 * all of one document, as it always was. */
	snprintf(text, sizeof text, "%s", fill(reads));
	p = LOAD(NAMED(file("a.json", text)),
	    VALUE("/filesystem/write", fill("[\"@/data\"]")));
	assert_true(has(p, KN_MOUNT_BIND, "data", true));
	kn_policy_free(p);
	p = LOAD(NAMED(file("a.json", text)), VALUE("/filesystem/mounts", fill(ro)));
	assert_true(has(p, KN_MOUNT_BIND, "data", false));
	kn_policy_free(p);
	snprintf(text, sizeof text, "%s", fill(all));
	p = LOAD(NAMED(file("a.json", text)));
	assert_true(has(p, KN_MOUNT_BIND, "data", true));
	kn_policy_free(p);
	/* What an emptied list said is gone. */
	p = LOAD(NAMED(file("a.json", text)), SET("/filesystem/write=null"),
	    VALUE("/filesystem/mounts", fill(ro)));
	assert_true(has(p, KN_MOUNT_BIND, "data", false));
	kn_policy_free(p);
}

static void
a_name_that_a_task_could_make_is_refused(void **state)
{
	(void)state;
	refused_fs(fill("\"write\":[\"@/proj\"],\"deny\":[\"**/.env\"]"), "deny/0");
	refused_fs(
	    fill("\"write\":[\"@/proj\"],\"deny\":[\"@/proj/*.key\"]"), "deny/0");
	refused_fs(fill("\"write\":[\"@/proj/sub\"],\"deny\":[\"@/**/x\"]"), "deny/0");
	refused_fs(
	    fill("\"write\":[\"@/proj\"],\"deny\":[\"@/proj/none\"]"), "not there");
	/* Where nothing can be made, they are fine. */
	kn_policy_free(
	    load(fill("\"read\":[\"@/proj\"],\"deny\":[\"@/proj/none\",\"**/n\"]")));
	kn_policy_free(load(fill("\"write\":[\"@/proj\"],\"read\":[\"@/proj/sub\"],"
				 "\"deny\":[\"@/proj/sub/**/.env\"]")));
	kn_policy_free(
	    load(fill("\"write\":[\"@/proj\"],\"deny\":[\"@/data/*.key\"]")));
}

static void
a_folder_that_cannot_be_read_is_not_passed_over(void **state)
{
	char path[128];

	(void)state;
	if (geteuid() == 0)
		return; /* root reads any */
	snprintf(path, sizeof path, "%s/proj/sub", root);
	assert_int_equal(chmod(path, 0), 0);
	refused_fs(fill("\"read\":[\"@/proj\"],\"deny\":[\"**/.env\"]"), "proj/sub");
	assert_int_equal(chmod(path, 0755), 0);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(an_entry_that_cannot_be_kept_is_named),
		cmocka_unit_test(an_entry_is_made_absolute),
		cmocka_unit_test(a_pattern_means_what_it_should),
		cmocka_unit_test(read_and_write_are_binds_at_the_same_place),
		cmocka_unit_test(a_link_on_the_way_is_made_again),
		cmocka_unit_test(deny_is_a_mask_wherever_a_bind_shows_it),
		cmocka_unit_test(deny_in_a_writable_bind_holds_its_folders),
		cmocka_unit_test(a_mount_in_a_writable_bind_holds_its_folders),
		cmocka_unit_test(a_list_does_not_undo_what_a_later_document_says),
		cmocka_unit_test(a_name_that_a_task_could_make_is_refused),
		cmocka_unit_test(a_folder_that_cannot_be_read_is_not_passed_over),
	};

	return cmocka_run_group_tests_name(
	    "sandbox/policy_files", tests, make_tree, remove_tree);
}
