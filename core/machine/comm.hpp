// SPDX-License-Identifier: Apache-2.0
// comm.hpp: the messages between several processes (ranks) that work on one problem, and the
// trivial case of one process.
#pragma once

#include <cstddef>
#include <exception>
#include <new>
#include <optional>
#include <span>
#include <string>
#include <type_traits>

#include "core/error.hpp"

namespace qrtool {

/// An Error that can be sent to other ranks.
struct Failure {
  ExitCode code = ExitCode::internal;
  std::string what, hint;

  /// Describes the exception that is being handled.
  static Failure current();
  /// Throws the error again, with the exception class that belongs to its code.
  [[noreturn]] void raise() const;
};

class Comm {
 public:
  virtual ~Comm() = default;

  virtual int rank() const = 0;
  virtual int size() const = 0;
  /// Returns the number of ranks on this machine.
  virtual int local_size() const { return 1; }
  /// Whether this is rank 0, which alone writes and prints.
  bool is_root() const { return rank() == 0; }

  /// Move bytes from one rank to another. Both state the same number of bytes, and either may wait
  /// for the other.
  virtual void send(int to, std::span<const std::byte> bytes) = 0;
  virtual void receive(int from, std::span<std::byte> bytes) = 0;

  /// Every rank calls this, with its failure if it has one. On every rank it returns the failure of
  /// the lowest rank that has one.
  virtual std::optional<Failure> agree(const std::optional<Failure>& mine) = 0;
};

/// A Comm of one rank, for a process that runs alone.
class SingleComm final : public Comm {
 public:
  int rank() const override { return 0; }
  int size() const override { return 1; }
  void send(int, std::span<const std::byte>) override {}
  void receive(int, std::span<std::byte>) override {}
  std::optional<Failure> agree(const std::optional<Failure>& mine) override { return mine; }
};

/// The bytes of `count` values, which must be trivially copyable.
template <class T>
std::span<const std::byte> bytes_of(const T* data, std::size_t count) {
  static_assert(std::is_trivially_copyable_v<T>);
  return std::as_bytes(std::span(data, count));
}
template <class T>
std::span<std::byte> writable_bytes_of(T* data, std::size_t count) {
  static_assert(std::is_trivially_copyable_v<T>);
  return std::as_writable_bytes(std::span(data, count));
}

/// Copies `count` values of rank 0 to every rank.
template <class T>
void broadcast(Comm& comm, T* data, std::size_t count) {
  if (!comm.is_root()) comm.receive(0, writable_bytes_of(data, count));
  for (int to = 1; comm.is_root() && to < comm.size(); ++to) comm.send(to, bytes_of(data, count));
}

/// Calls body() on every rank. If it fails on one rank, every rank throws the same error.
template <class Body>
void together(Comm& comm, Body body) {
  if (comm.size() == 1) return body();
  std::optional<Failure> failure;
  try {
    body();
  } catch (...) {
    failure = Failure::current();
  }
  if (const std::optional<Failure> agreed = comm.agree(failure)) agreed->raise();
}

}  // namespace qrtool
