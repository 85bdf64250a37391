"""permissions."""


def may(**members):
    return doc(permissions=members)


@key("/permissions/mode", "/permissions/project")
def a_project_is_read_and_written_without_its_secrets():
    d = dir_of("file", ".env")
    r = sh(may(mode="project", project=d), "cat %s/file; echo x >%s/new; cat %s/.env" % (d, d, d))
    want(r.out == "file\n" and os.path.exists(d + "/new") and "Permission denied" in r.err, r)


@key("/permissions/read", "/permissions/read/*")
def what_may_be_read():
    d = dir_of("file")
    r = sh(may(read=[d]), "cat %s/file; ! touch %s/new" % (d, d))
    want(r.out == "file\n" and r.rc == 0, r)


@key("/permissions/write", "/permissions/write/*")
def what_may_be_written():
    d = dir_of()
    r = sh(may(write=[d]), "echo x >%s/new" % d)
    want(r.rc == 0 and os.path.exists(d + "/new"), r)


@key("/permissions/deny_read", "/permissions/deny_read/*")
def what_may_not_be_read():
    d = dir_of("open", "secret")
    r = sh(may(read=[d], deny_read=[d + "/secret"]), "cat %s/open %s/secret" % (d, d))
    want(r.out == "open\n" and "Permission denied" in r.err, r)


@key("/permissions/deny_write", "/permissions/deny_write/*")
def what_may_not_be_written():
    d = dir_of("kept")
    os.chmod(d + "/kept", 0o666)
    r = sh(may(write=[d], deny_write=[d + "/kept"]), "echo x >%s/new && ! echo y >%s/kept" % (d, d))
    want(r.rc == 0 and open(d + "/kept").read() == "kept\n", r)


@key("/permissions/env", "/permissions/env/*")
def what_is_taken_of_the_environment():
    r = sh(may(env=["KNIT_KEYS_A"]), "echo $KNIT_KEYS_A", more={"KNIT_KEYS_A": "a"})
    want(r.out == "a\n", r)


@key("/permissions/console")
def output_may_be_thrown_away():
    r = sh(may(console=False), "echo said; exit 3")
    want(r.out == "" and r.rc == 3, r)


@key("/permissions/run", "/permissions/run/*")
def which_programs_are_executed():
    r = sh(may(run=["cat"]), "echo x | cat; head -c 0 /dev/null; echo $?")
    want(r.out == "x\n126\n", r)
