// SPDX-License-Identifier: Apache-2.0
#include "examples/kv_store/store.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

namespace kv {
namespace {

// A record: 32 bits of length, then a message kWrite with its own checksum.
std::string RecordOf(const std::string& key, const Value& value) {
  const std::string message =
      Encode({.op = Op::kWrite, .version = value.version, .key = key, .value = value.text});
  const auto length = static_cast<uint32_t>(message.size());
  return std::string(reinterpret_cast<const char*>(&length), sizeof(length)) + message;
}

bool WriteAll(int fd, const std::string& bytes) {
  for (size_t done = 0; done < bytes.size();) {
    const ssize_t written = ::write(fd, bytes.data() + done, bytes.size() - done);
    if (written > 0) {
      done += static_cast<size_t>(written);
    } else if (errno != EINTR) {
      return false;
    }
  }
  return true;
}

bool ReadAll(int fd, std::string& bytes) {
  struct stat status {};
  if (::fstat(fd, &status) != 0) return false;
  bytes.resize(static_cast<size_t>(status.st_size));
  for (size_t done = 0; done < bytes.size();) {
    const ssize_t got = ::read(fd, bytes.data() + done, bytes.size() - done);
    if (got <= 0) return false;
    done += static_cast<size_t>(got);
  }
  return true;
}

}  // namespace

Store::~Store() {
  if (fd_ >= 0) ::close(fd_);
}

bool Store::OpenFile() {
  fd_ = ::open(path_.c_str(), O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
  return fd_ >= 0;
}

std::string Store::Open() {
  const std::lock_guard lock(mutex_);
  std::string bytes;
  if (!OpenFile() || !ReadAll(fd_, bytes)) return path_ + ": " + std::strerror(errno);
  size_t at = 0;
  while (at < bytes.size()) {
    uint32_t length = 0;
    const size_t left = bytes.size() - at;
    const bool whole = left >= sizeof(length) &&
                       (std::memcpy(&length, bytes.data() + at, sizeof(length)), true) &&
                       left - sizeof(length) >= length;
    if (!whole) break;
    const auto message = Decode(bytes.substr(at + sizeof(length), length));
    if (!message.has_value() || message->op != Op::kWrite) {
      return path_ + ": the record at byte " + std::to_string(at) +
             " is damaged: remove the journal, and the other replicas send the values again";
    }
    Value& value = values_[message->key];
    if (message->version > value.version) {
      bytes_ = bytes_ - value.text.size() + message->value.size();
      value = {message->version, message->value};
    }
    highest_count_ = std::max(highest_count_, CountOf(message->version));
    at += sizeof(length) + length;
  }
  journal_bytes_ = at;
  if (at < bytes.size() && ::ftruncate(fd_, static_cast<off_t>(at)) != 0)
    return path_ + ": " + std::strerror(errno);
  return "";
}

std::optional<Value> Store::Read(const std::string& key) const {
  const std::lock_guard lock(mutex_);
  const auto found = values_.find(key);
  if (found == values_.end()) return std::nullopt;
  return found->second;
}

bool Store::Write(const std::string& key, const Value& value) {
  const std::lock_guard lock(mutex_);
  const auto found = values_.find(key);
  if (found != values_.end() && found->second.version >= value.version) return true;
  const size_t before = found == values_.end() ? 0 : found->second.text.size();
  if ((found == values_.end() && values_.size() >= kMostKeys) ||
      bytes_ - before + value.text.size() > kMostBytes)
    return false;
  if (!Append(key, value)) return false;
  bytes_ = bytes_ - before + value.text.size();
  highest_count_ = std::max(highest_count_, CountOf(value.version));
  values_[key] = value;
  if (journal_bytes_ >= kCompactAt && journal_bytes_ > 2 * bytes_) (void)Compact();
  return true;
}

bool Store::Append(const std::string& key, const Value& value) {
  const std::string record = RecordOf(key, value);
  if (!WriteAll(fd_, record) || (sync_ && ::fdatasync(fd_) != 0)) {
    // Half of a record would damage the journal for those that follow.
    (void)::ftruncate(fd_, static_cast<off_t>(journal_bytes_));
    return false;
  }
  journal_bytes_ += record.size();
  return true;
}

bool Store::Compact() {
  const std::string next = path_ + ".new";
  const int fd = ::open(next.c_str(), O_RDWR | O_CREAT | O_TRUNC | O_APPEND | O_CLOEXEC, 0600);
  if (fd < 0) return false;
  uint64_t size = 0;
  bool good = true;
  for (const auto& [key, value] : values_) {
    const std::string record = RecordOf(key, value);
    good = good && WriteAll(fd, record);
    size += record.size();
  }
  if (!good || ::fdatasync(fd) != 0 || ::rename(next.c_str(), path_.c_str()) != 0) {
    ::close(fd);
    ::unlink(next.c_str());
    return false;
  }
  ::close(std::exchange(fd_, fd));
  journal_bytes_ = size;
  return true;
}

std::vector<std::string> Store::Keys() const {
  const std::lock_guard lock(mutex_);
  std::vector<std::string> keys;
  keys.reserve(values_.size());
  for (const auto& [key, value] : values_) keys.push_back(key);
  return keys;
}

size_t Store::size() const {
  const std::lock_guard lock(mutex_);
  return values_.size();
}

uint64_t Store::highest_count() const {
  const std::lock_guard lock(mutex_);
  return highest_count_;
}

uint64_t Store::journal_bytes() const {
  const std::lock_guard lock(mutex_);
  return journal_bytes_;
}

}  // namespace kv
