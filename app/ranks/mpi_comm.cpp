// SPDX-License-Identifier: Apache-2.0
// mpi_comm.cpp: connects ranks by MPI, which no other file knows.
#include <mpi.h>

#include <algorithm>
#include <array>

#include "app/ranks/world.hpp"

namespace qrtool {
namespace {

/// MPI counts bytes in an int.
constexpr std::size_t most_bytes_at_once = std::size_t{1} << 30;
constexpr int tag = 0;

/// Calls piece(first byte, bytes) for pieces that MPI can count.
template <class Piece>
void in_pieces(std::size_t bytes, Piece piece) {
  for (std::size_t done = 0; done < bytes; done += most_bytes_at_once)
    piece(done, static_cast<int>(std::min(bytes - done, most_bytes_at_once)));
}

class MpiComm final : public Comm {
 public:
  MpiComm() {
    int granted = 0;
    // Calls come from the thread that writes or from the main thread, never from two at once.
    MPI_Init_thread(nullptr, nullptr, MPI_THREAD_SERIALIZED, &granted);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank_);
    MPI_Comm_size(MPI_COMM_WORLD, &size_);
    MPI_Comm machine = MPI_COMM_NULL;
    MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &machine);
    MPI_Comm_size(machine, &local_size_);
    MPI_Comm_free(&machine);
    if (granted >= MPI_THREAD_SERIALIZED || size_ == 1) return;
    const std::optional<Failure> failure =
        Failure{ExitCode::internal, "this MPI cannot be called from threads", ""};
    failure->raise();
  }
  ~MpiComm() override { MPI_Finalize(); }
  MpiComm(const MpiComm&) = delete;
  MpiComm& operator=(const MpiComm&) = delete;

  int rank() const override { return rank_; }
  int size() const override { return size_; }
  int local_size() const override { return local_size_; }
  bool has_agreed() const { return has_agreed_; }

  void send(int to, std::span<const std::byte> bytes) override {
    in_pieces(bytes.size(), [&](std::size_t first, int count) {
      MPI_Send(bytes.data() + first, count, MPI_BYTE, to, tag, MPI_COMM_WORLD);
    });
  }

  void receive(int from, std::span<std::byte> bytes) override {
    in_pieces(bytes.size(), [&](std::size_t first, int count) {
      MPI_Recv(bytes.data() + first, count, MPI_BYTE, from, tag, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    });
  }

  std::optional<Failure> agree(const std::optional<Failure>& mine) override {
    int lowest = mine ? rank_ : size_;
    MPI_Allreduce(MPI_IN_PLACE, &lowest, 1, MPI_INT, MPI_MIN, MPI_COMM_WORLD);
    has_agreed_ = lowest < size_;
    if (!has_agreed_) return std::nullopt;
    Failure failure = mine && lowest == rank_ ? *mine : Failure{};
    std::array<int, 3> header{static_cast<int>(failure.code), static_cast<int>(failure.what.size()),
                              static_cast<int>(failure.hint.size())};
    MPI_Bcast(header.data(), 3, MPI_INT, lowest, MPI_COMM_WORLD);
    failure.code = static_cast<ExitCode>(header[0]);
    failure.what.resize(static_cast<std::size_t>(header[1]));
    failure.hint.resize(static_cast<std::size_t>(header[2]));
    MPI_Bcast(failure.what.data(), header[1], MPI_CHAR, lowest, MPI_COMM_WORLD);
    MPI_Bcast(failure.hint.data(), header[2], MPI_CHAR, lowest, MPI_COMM_WORLD);
    return failure;
  }

 private:
  int rank_ = 0, size_ = 1, local_size_ = 1;
  bool has_agreed_ = false;  // whether the last agree() ended in a failure
};

}  // namespace

std::unique_ptr<Comm> join_world() { return std::make_unique<MpiComm>(); }

void abandon_world(const Comm& world, int exit_code) {
  const auto* ranks = dynamic_cast<const MpiComm*>(&world);
  if (ranks != nullptr && world.size() > 1 && !ranks->has_agreed())
    MPI_Abort(MPI_COMM_WORLD, exit_code);
}

}  // namespace qrtool
