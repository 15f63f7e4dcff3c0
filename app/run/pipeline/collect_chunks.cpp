// SPDX-License-Identifier: Apache-2.0
// collect_chunks.cpp: a request is one word; its answer is a header, after a failure also texts.
#include <algorithm>
#include <array>
#include <cstdint>
#include <string>

#include "app/run/pipeline/share_stages.hpp"

namespace qrtool {
namespace {

enum class Word : std::uint64_t { go, stop };

/// Stands before each message: zeros before a chunk, and before a failure its exit code and the
/// lengths of its texts.
using Header = std::array<std::uint64_t, 3>;

}  // namespace

ChunkCollector::ChunkCollector(Comm& comm, index_t chunks) : comm_(comm), chunks_(chunks) {
  for (int rank = 0; rank < comm.size(); ++rank) next_.push_back(std::min<index_t>(rank, chunks));
}

void ChunkCollector::request(int owner, index_t chunk) {
  const Word go = Word::go;
  comm_.send(owner, bytes_of(&go, 1));
  next_[owner] = std::min(chunk + comm_.size(), chunks_);
  Header header{};
  comm_.receive(owner, writable_bytes_of(header.data(), header.size()));
  if (header[0] == 0) return;
  next_[owner] = chunks_;
  Failure failure{.code = static_cast<ExitCode>(header[0]),
                  .what = std::string(header[1], ' '),
                  .hint = std::string(header[2], ' ')};
  comm_.receive(owner, writable_bytes_of(failure.what.data(), failure.what.size()));
  comm_.receive(owner, writable_bytes_of(failure.hint.data(), failure.hint.size()));
  failure.raise();
}

void ChunkCollector::stop_all() {
  const Word stop = Word::stop;
  for (int rank = 1; rank < comm_.size(); ++rank)
    if (next_[rank] < chunks_) comm_.send(rank, bytes_of(&stop, 1));
}

bool ChunkOwner::wait_for_request() {
  if (is_stopped_) return false;
  Word word{};
  comm_.receive(0, writable_bytes_of(&word, 1));
  is_stopped_ = word == Word::stop;
  return !is_stopped_;
}

bool ChunkOwner::announce() {
  if (!wait_for_request()) return false;
  const Header header{};
  comm_.send(0, bytes_of(header.data(), header.size()));
  return true;
}

void ChunkOwner::announce_failure(const Failure& failure) {
  if (!wait_for_request()) return;
  const Header header{static_cast<std::uint64_t>(failure.code), failure.what.size(),
                      failure.hint.size()};
  comm_.send(0, bytes_of(header.data(), header.size()));
  comm_.send(0, bytes_of(failure.what.data(), failure.what.size()));
  comm_.send(0, bytes_of(failure.hint.data(), failure.hint.size()));
}

}  // namespace qrtool
