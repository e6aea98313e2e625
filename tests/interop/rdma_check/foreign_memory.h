// SPDX-License-Identifier: Apache-2.0
// ForeignMemory: memory of a program that is not the plain private pages that all other cases use,
// by where it comes from. It starts with pattern bytes of a seed.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>

namespace rocegw::interop {

enum class MemoryKind {
  kShared,       // anonymous, shared with children
  kSharedFile,   // what is written must get into the file
  kPrivateFile,  // what is written must not
  kReadOnlyFile,
  kMemfd,
  kSystemV,
  kData,  // of the program itself
  kHeap,
  kStack,
  kHugePages,
  kDevice,        // of a GPU, by CUDA
  kDeviceShared,  // the same, of cuMemCreate
  kDeviceHip,
};

const char* Name(MemoryKind kind);

struct ForeignMemory {
  uint8_t* start;
  size_t length;
  // What the file behind it holds at an offset, where there is one that can be asked.
  std::function<void(size_t offset, uint8_t* out, size_t length)> read_file;
  bool on_device = false;  // no processor can touch it; read_file reads it
  // Frees it ahead of time, where that is possible.
  std::function<void()> free = {};
};

constexpr size_t kForeignLength = size_t{256} << 10;

// Makes it, calls `use`, and takes it away. Throws Failure where the machine does not give it.
void WithMemory(MemoryKind kind, uint64_t seed, const std::function<void(ForeignMemory&)>& use);

}  // namespace rocegw::interop
