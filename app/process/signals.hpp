// SPDX-License-Identifier: Apache-2.0
// signals.hpp: an interrupted run leaves no temporary file and says what is on disk.
#pragma once

namespace qrtool {

/// SIGINT, SIGTERM and SIGHUP: one line, remove the temporary files, die of the signal. SIGPIPE:
/// the same without a line. SIGXFSZ: ignored, so that a write fails instead. A signal that the
/// parent had set to be ignored stays ignored.
void install_signal_handlers();

/// What an interrupted run says after "interrupted": a string literal, as a handler reads it.
void set_interrupt_message(const char* literal);

/// For one of several ranks, which share the temporary files of rank 0: the one that removes them
/// says its line, or that nothing is written where it has none.
void share_interrupt_message();

}  // namespace qrtool
