// SPDX-License-Identifier: Apache-2.0
// State that one process gives to another in a sealed file of memory: no message carries it, and
// the reader gets it at once. Plain values.
#pragma once

#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "gateway/base/inherited_fds.h"
#include "gateway/base/status.h"
#include "gateway/base/unique_fd.h"

namespace rocegw::take_over {

// Descriptor of a state, beside those of FdKind.
inline constexpr FdKind kStateFile{1000};

// Returns a file with these bytes that no process can change.
StatusOr<UniqueFd> MakeStateFile(std::span<const uint8_t> bytes);

// Bytes of a state file.
class StateFile {
 public:
  StateFile() = default;
  // EPROTO: the file can be changed, or is longer than `most`.
  static StatusOr<StateFile> Map(const UniqueFd& fd, size_t most);
  ~StateFile();
  StateFile(StateFile&& other) noexcept : bytes_(std::exchange(other.bytes_, {})) {}
  StateFile& operator=(StateFile&& other) noexcept {
    std::swap(bytes_, other.bytes_);
    return *this;
  }

  std::span<const uint8_t> bytes() const { return bytes_; }

 private:
  explicit StateFile(std::span<const uint8_t> bytes) : bytes_(bytes) {}

  std::span<const uint8_t> bytes_;
};

}  // namespace rocegw::take_over
