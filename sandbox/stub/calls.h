/* sandbox/stub/calls.h: every system call that our own code makes after the worker
 * filter is in place: the stub that serves, a cell's init, and the task's process up
 * to its execve. The worker filter allows these beside what the policy allows; the
 * cell filter, loaded just before execve, gives each of them back to the policy.
 *
 * KN_STUB_CALLS(X) expands to X(name, why) for each, name as libseccomp spells it
 * (resolve it; where the native architecture has none, skip it). The list is checked by
 * running the stub under strace: a call missing here fails the first task.
 *
 * Between loading the cell filter and the program's first instruction only execve is
 * called, and exit where that fails.
 */
#ifndef KN_STUB_CALLS_H
#define KN_STUB_CALLS_H

/* clang-format off */
#define KN_STUB_CALLS(X) \
	/* serving: the private socket, the doorbell, the clock */ \
	X(recvmsg, "messages of the supervisor") \
	X(sendmsg, "descriptors for the supervisor") \
	X(ppoll, "wait for the socket and the running cell") \
	X(read, "cgroup and proc files") \
	X(pread64, "cgroup files kept open") \
	X(write, "doorbell, files of a task") \
	X(pwrite64, "cgroup files, clear_refs kept open") \
	X(close, "descriptors of tasks") \
	X(clock_gettime, "deadlines where there is no vDSO; CPU clocks of a cell") \
	X(restart_syscall, "the kernel's own way to go on after a stop") \
	X(mmap, "room to decode a large job") \
	X(munmap, "give that room back") \
	X(madvise, "give pages of a large job back") \
	/* a cell */ \
	X(fsopen, "/task as a detached tmpfs") \
	X(fsconfig, "its size") \
	X(fsmount, "its descriptor") \
	X(socketpair, "sockets that a task left are looked for when one is closed") \
	X(clone3, "init in new namespaces; the task") \
	X(clone, "the same, where a filter around us refuses clone3") \
	X(getppid, "without namespaces: whether the stub of an init lives") \
	X(pidfd_open, "without namespaces: a number that stays its own") \
	X(pidfd_send_signal, "without namespaces: a number that stays its own") \
	X(getuid, "without namespaces: whose processes are counted") \
	X(getpid, "without namespaces: who hears a signal") \
	X(unlinkat, "without namespaces: what a task left") \
	X(renameat, "without namespaces: what a task left, deep down") \
	X(fchmodat, "without namespaces: what a task left and closed") \
	X(unshare, "another IPC namespace after one that a task has used") \
	X(msgget, "whether a task has made an object there") \
	X(msgctl, "whether a task has made an object there") \
	X(semget, "whether a task has made an object there") \
	X(semctl, "whether a task has made an object there") \
	X(shmget, "whether a task has made an object there") \
	X(shmctl, "whether a task has made an object there") \
	X(umount2, "a file system that a task has used leaves the template") \
	X(flistxattr, "whether a task has used it") \
	X(fstatfs, "whether a task has used it") \
	X(open_tree, "binds below a directory that a cell covers") \
	X(mount, "/tmp, /dev/shm, /proc of a cell") \
	X(move_mount, "/task and the binds above into place") \
	X(wait4, "reap") \
	X(getrusage, "what the cell took") \
	X(rt_sigaction, "init hears that it shall end its cell") \
	X(rt_sigreturn, "back from that") \
	X(setpgid, "init of launcher direct: out of the stub's group") \
	X(sched_setattr, "init gets a processor soon, also in a crowd") \
	X(kill, "end all of a cell; signals for the task") \
	X(exit_group, "end of the stub") \
	/* files of a task, in and out */ \
	X(openat, "proc files, the terminal") \
	X(openat2, "below /task without links") \
	X(mkdirat, "folders of a task's files") \
	X(mknodat, "what is denied below an overlay: a device 0/0 stands for nothing") \
	X(fchmod, "mode of a task's file") \
	X(newfstatat, "what a name is") \
	X(sendfile, "files that came as descriptors") \
	X(getdents64, "matching patterns; watching without a cgroup") \
	X(lseek, "start a proc folder over") \
	X(ioctl, "make a terminal") \
	/* the task's process before execve */ \
	X(prctl, "dumpable for a moment, to write its own oom_score_adj") \
	X(setsid, "a session of its own") \
	X(dup3, "its standard streams") \
	X(fcntl, "the descriptors of a resident, out of one another's way") \
	X(close_range, "nothing else is inherited") \
	X(prlimit64, "its limits") \
	X(chdir, "its directory") \
	X(faccessat, "find the program") \
	X(capset, "drop what is left") \
	X(capget, "verify that it is gone") \
	X(landlock_create_ruleset, "its file rules") \
	X(landlock_add_rule, "its file rules") \
	X(landlock_restrict_self, "its file rules") \
	X(seccomp, "the cell filter") \
	X(execve, "the program")
/* clang-format on */

#endif
