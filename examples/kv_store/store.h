// SPDX-License-Identifier: Apache-2.0
// Values of one replica: in memory, and in a journal that is read when the replica starts. Any
// thread.
#pragma once

#include <cstdint>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "examples/kv_store/message.h"

namespace kv {

struct Value {
  Version version = 0;
  std::string text;
};

class Store {
 public:
  static constexpr size_t kMostKeys = 1 << 16;
  static constexpr size_t kMostBytes = 256 << 20;
  // The journal is written anew when it has this size and over twice the bytes of the values.
  static constexpr size_t kCompactAt = 8 << 20;

  // `sync`: a write returns when the disk has it; else when the kernel has it.
  Store(std::string folder, bool sync) : path_(std::move(folder) + "/journal"), sync_(sync) {}
  ~Store();
  Store(const Store&) = delete;
  Store& operator=(const Store&) = delete;

  // Reads the journal. Cuts off a last record that was not written to its end. Returns why the
  // replica must not start: a damaged record in the middle means that acknowledged values are
  // missing.
  std::string Open();

  std::optional<Value> Read(const std::string& key) const;
  // Stores a value that is newer than what is there; an older one changes nothing. Returns false if
  // the value was not stored: the store is full, or the journal cannot be written.
  bool Write(const std::string& key, const Value& value);

  std::vector<std::string> Keys() const;
  size_t size() const;
  // Returns the highest count of all versions.
  uint64_t highest_count() const;
  // Returns the size of the journal in bytes.
  uint64_t journal_bytes() const;

 private:
  bool Append(const std::string& key, const Value& value);
  bool Compact();
  bool OpenFile();

  const std::string path_;
  const bool sync_;
  mutable std::mutex mutex_;
  int fd_ = -1;
  uint64_t journal_bytes_ = 0;
  size_t bytes_ = 0;
  uint64_t highest_count_ = 0;
  std::map<std::string, Value> values_;
};

}  // namespace kv
