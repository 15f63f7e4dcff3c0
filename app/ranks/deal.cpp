// SPDX-License-Identifier: Apache-2.0
// deal.cpp: what ranks say to each other between chunks: a word from rank 0 (go on, or stop), and
// a word back (a chunk follows, or a failure).
#include "app/ranks/deal.hpp"

#include <algorithm>
#include <array>
#include <cstdint>
#include <string>

namespace qrtool {
namespace {

enum class Word : std::uint64_t { go, stop };

/// Before a chunk: zeros. Before a failure: its exit code and the lengths of its texts.
using Header = std::array<std::uint64_t, 3>;

}  // namespace

Asker::Asker(Comm& comm, index_t chunks) : comm_(comm), chunks_(chunks) {
  for (int rank = 0; rank < comm.size(); ++rank) next_.push_back(std::min<index_t>(rank, chunks));
}

void Asker::ask(int rank, index_t chunk) {
  const Word go = Word::go;
  comm_.send(rank, bytes_of(&go, 1));
  next_[rank] = std::min(chunk + comm_.size(), chunks_);
  Header header{};
  comm_.receive(rank, writable_bytes_of(header.data(), header.size()));
  if (header[0] == 0) return;
  next_[rank] = chunks_;
  Failure failure{static_cast<ExitCode>(header[0]), std::string(header[1], ' '),
                  std::string(header[2], ' ')};
  comm_.receive(rank, writable_bytes_of(failure.what.data(), failure.what.size()));
  comm_.receive(rank, writable_bytes_of(failure.hint.data(), failure.hint.size()));
  failure.raise();
}

void Asker::stop_all() {
  const Word stop = Word::stop;
  for (int rank = 1; rank < comm_.size(); ++rank)
    if (next_[rank] < chunks_) comm_.send(rank, bytes_of(&stop, 1));
}

bool Answerer::wait() {
  Word word{};
  comm_.receive(0, writable_bytes_of(&word, 1));
  return word == Word::go;
}

bool Answerer::wait_and_accept() {
  if (!wait()) return false;
  const Header header{};
  comm_.send(0, bytes_of(header.data(), header.size()));
  return true;
}

void Answerer::wait_and_fail(const Failure& failure) {
  if (!wait()) return;
  const Header header{static_cast<std::uint64_t>(failure.code), failure.what.size(),
                      failure.hint.size()};
  comm_.send(0, bytes_of(header.data(), header.size()));
  comm_.send(0, bytes_of(failure.what.data(), failure.what.size()));
  comm_.send(0, bytes_of(failure.hint.data(), failure.hint.size()));
}

}  // namespace qrtool
