//! The system calls that a confined run cannot make.
//!
//! They would undo the confinement (namespaces, mounts), pass by the filter itself (`io_uring`), or reach parts of the
//! kernel that no build needs. A call by another architecture's numbers ends the process.

use std::collections::BTreeMap;

use seccompiler::{
    BpfProgram, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompFilter, SeccompRule,
    TargetArch, apply_filter,
};

use crate::Error;

/// Forbids the calls to this process and to all that it starts. The process must have `no_new_privs`.
pub(crate) fn forbid() -> Result<(), Error> {
    let failed = |error: &dyn std::fmt::Display| Error::Profile(format!("the filter of system calls: {error}"));
    for (calls, errno) in [(refused().map_err(|error| failed(&error))?, libc::EPERM), (unseen(), libc::ENOSYS)] {
        let refuse = SeccompAction::Errno(errno.unsigned_abs());
        let filter = SeccompFilter::new(calls, SeccompAction::Allow, refuse, ARCH).map_err(|error| failed(&error))?;
        let program = BpfProgram::try_from(filter).map_err(|error| failed(&error))?;
        apply_filter(&program).map_err(|error| failed(&error))?;
    }
    Ok(())
}

type Calls = BTreeMap<i64, Vec<SeccompRule>>;

/// The calls that are refused with `EPERM`.
fn refused() -> Result<Calls, seccompiler::BackendError> {
    let mut calls = Calls::new();
    for call in NEVER {
        each_number(*call, |number| drop(calls.insert(number, Vec::new())));
    }
    let is = |index, mask: u64, value| {
        SeccompCondition::new(index, SeccompCmpArgLen::Qword, SeccompCmpOp::MaskedEq(mask), value)
    };
    // A new namespace of any kind.
    let mut clones = Vec::new();
    for flag in NAMESPACES {
        let flag = u64::from(flag.unsigned_abs());
        clones.push(SeccompRule::new(vec![is(0, flag, flag)?])?);
    }
    // Sockets of other families than these.
    let mut families = Vec::new();
    for family in [libc::AF_UNIX, libc::AF_INET, libc::AF_INET6, libc::AF_NETLINK] {
        let family = u64::from(family.unsigned_abs());
        families.push(SeccompCondition::new(0, SeccompCmpArgLen::Dword, SeccompCmpOp::Ne, family)?);
    }
    let sockets = vec![SeccompRule::new(families)?];
    // Input for a terminal, as if its user had typed it.
    let mut typed = Vec::new();
    for request in [libc::TIOCSTI, libc::TIOCLINUX] {
        let compared = SeccompCondition::new(1, SeccompCmpArgLen::Dword, SeccompCmpOp::Eq, request)?;
        typed.push(SeccompRule::new(vec![compared])?);
    }
    // Limits and priorities of other processes, which a namespace of users does not protect.
    let of_another = |index| -> Result<Vec<SeccompRule>, seccompiler::BackendError> {
        let another = SeccompCondition::new(index, SeccompCmpArgLen::Dword, SeccompCmpOp::Ne, 0)?;
        Ok(vec![SeccompRule::new(vec![another])?])
    };
    for call in [libc::SYS_prlimit64, libc::SYS_sched_setscheduler, libc::SYS_sched_setparam, libc::SYS_sched_setattr] {
        let rules = of_another(0)?;
        each_number(call, |number| drop(calls.insert(number, rules.clone())));
    }
    for call in [libc::SYS_setpriority, libc::SYS_ioprio_set] {
        let rules = of_another(1)?;
        each_number(call, |number| drop(calls.insert(number, rules.clone())));
    }
    for (call, rules) in [(libc::SYS_clone, clones), (libc::SYS_socket, sockets), (libc::SYS_ioctl, typed)] {
        each_number(call, |number| drop(calls.insert(number, rules.clone())));
    }
    Ok(calls)
}

/// Calls that seem not to exist, so that programs use an older one, whose arguments the filter sees.
fn unseen() -> Calls {
    let mut calls = Calls::new();
    for call in [libc::SYS_clone3, libc::SYS_io_uring_setup, libc::SYS_io_uring_enter, libc::SYS_io_uring_register] {
        each_number(call, |number| drop(calls.insert(number, Vec::new())));
    }
    calls
}

/// The numbers of a call: a kernel for x86-64 may also know it by that of its x32 form.
fn each_number(call: i64, mut take: impl FnMut(i64)) {
    take(call);
    if cfg!(target_arch = "x86_64") {
        take(call | 0x4000_0000);
    }
}

#[cfg(target_arch = "x86_64")]
const ARCH: TargetArch = TargetArch::x86_64;
#[cfg(target_arch = "aarch64")]
const ARCH: TargetArch = TargetArch::aarch64;
#[cfg(target_arch = "riscv64")]
const ARCH: TargetArch = TargetArch::riscv64;

const NAMESPACES: [i32; 8] = [
    libc::CLONE_NEWNS,
    libc::CLONE_NEWUSER,
    libc::CLONE_NEWNET,
    libc::CLONE_NEWPID,
    libc::CLONE_NEWIPC,
    libc::CLONE_NEWUTS,
    libc::CLONE_NEWCGROUP,
    0x80, // CLONE_NEWTIME
];

const NEVER: &[i64] = &[
    libc::SYS_acct,
    libc::SYS_add_key,
    libc::SYS_bpf,
    libc::SYS_chroot,
    libc::SYS_delete_module,
    libc::SYS_fanotify_init,
    libc::SYS_finit_module,
    libc::SYS_fsconfig,
    libc::SYS_fsmount,
    libc::SYS_fsopen,
    libc::SYS_fspick,
    libc::SYS_init_module,
    libc::SYS_kexec_load,
    libc::SYS_keyctl,
    libc::SYS_mount,
    libc::SYS_mount_setattr,
    libc::SYS_move_mount,
    libc::SYS_open_by_handle_at,
    libc::SYS_open_tree,
    libc::SYS_perf_event_open,
    libc::SYS_pidfd_getfd,
    libc::SYS_pivot_root,
    libc::SYS_process_vm_readv,
    libc::SYS_process_vm_writev,
    libc::SYS_quotactl,
    libc::SYS_reboot,
    libc::SYS_request_key,
    libc::SYS_setns,
    libc::SYS_settimeofday,
    libc::SYS_clock_settime,
    libc::SYS_swapoff,
    libc::SYS_swapon,
    libc::SYS_umount2,
    libc::SYS_unshare,
    libc::SYS_userfaultfd,
    443, // quotactl_fd
    467, // open_tree_attr
    469, // file_setattr
];
