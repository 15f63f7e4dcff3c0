// SPDX-License-Identifier: Apache-2.0
// signals.hpp: makes an interrupted run remove its temporary files and say what is on disk.
#pragma once

namespace qrtool {

/// On SIGINT, SIGTERM and SIGHUP the process removes its temporary files, prints one line and ends
/// by the signal; on SIGPIPE the same without a line. SIGXFSZ is ignored, so that the write fails
/// instead. A signal that the parent ignored stays ignored. After a crash the temporary files are
/// removed as well; one inside the HDF5 library ends the process with the exit code for an input
/// error and the name of the file that the library was reading.
void install_signal_handlers();

/// Call it after a driver was loaded: LLVM, which PoCL is built on, replaces the handler of
/// SIGABRT.
void take_back_abort();

/// Call it before the program itself ends by exit() or by returning from main(). If exit() runs
/// without it, a library has called it, and the exit code says so.
void expect_exit();

/// The message of a run whose output is being committed, and of a run whose output is complete.
inline constexpr const char* interrupted_while_finishing =
    "qrtool: interrupted while the output was being finished\n";
inline constexpr const char* interrupted_when_complete =
    "qrtool: interrupted; the output is complete\n";

/// Sets the line that an interrupted run prints. It must be a string literal, as a signal handler
/// reads it at any moment.
void set_interrupt_message(const char* literal);

/// From now on the line says how many of `all` outputs are complete. Each call of
/// set_interrupt_message(interrupted_when_complete) is one more.
void count_outputs(int all);

/// Call it if several ranks share the temporary files of rank 0. The rank that removes them prints
/// its message, or that nothing was written.
void share_interrupt_message();

}  // namespace qrtool
