// SPDX-License-Identifier: Apache-2.0
#include "gateway/far/pool/steps.h"

#include <cerrno>

namespace rocegw::far {
namespace {

constexpr uint32_t kMostRepeated = 32;
// An entry that stays torn has a body that came late: it is no value.
constexpr uint32_t kMostTorn = 2;

uint8_t* Bytes(void* memory) { return static_cast<uint8_t*>(memory); }

}  // namespace

std::span<const Command> Steps::Next() {
  commands_.clear();
  Advance();
  return commands_;
}

void Steps::ReadBucket() {
  commands_.push_back({.kind = Command::Kind::kRead,
                       .offset = shape_.BucketOffset(bucket_),
                       .local = Bytes(&buffers_.bucket),
                       .bytes = sizeof(Bucket)});
}

void Steps::CompareSwap(uint32_t way, uint64_t expected, uint64_t desired, uint64_t* found) {
  commands_.push_back({.kind = Command::Kind::kCompareSwap,
                       .offset = shape_.EntryOffset(bucket_, way),
                       .local = Bytes(found),
                       .bytes = sizeof(uint64_t),
                       .expected = expected,
                       .desired = desired});
}

void Steps::Free(uint32_t way, uint64_t* found) {
  const uint64_t word = bucket()[way].control;
  Control control = Control::Decode(word);
  control.state = EntryState::kFree;
  CompareSwap(way, word, control.word(), found);
}

bool Steps::MayRepeat() {
  if (++repeated_ <= kMostRepeated) return true;
  End(-EBUSY);
  return false;
}

// Get --------------------------------------------------------------------------------------------

void GetSteps::Advance() {
  switch (stage_) {
    case Stage::kBegin:
      stage_ = Stage::kBucket;
      return ReadBucket();
    case Stage::kBucket:
      return Choose();
    case Stage::kValue:
      return Verify();
    case Stage::kForgotten:
      return End(-ENOENT);
  }
}

void GetSteps::Choose() {
  const auto latest = Latest(bucket(), key_);
  if (!latest) {
    bool torn = false;
    for (const Entry& entry : bucket()) torn = torn || IsTorn(entry);
    if (!torn || ++torn_ > kMostTorn) return End(-ENOENT);
    return ReadBucket();
  }
  way_ = *latest;
  entry_ = bucket()[way_];
  if (entry_.bytes > most_bytes_) return End(-EMSGSIZE);
  if (entry_.bytes == 0 || entry_.bytes > shape_.block_bytes) return End(-ENOENT);
  if (wrong_check_ != 0 && entry_.check == wrong_check_) {
    // The same value was wrong before: its block has been overwritten.
    stage_ = Stage::kForgotten;
    return Free(way_, &buffers_.ignored);
  }
  stage_ = Stage::kValue;
  commands_.push_back({.kind = Command::Kind::kRead,
                       .offset = shape_.BlockOffset(bucket_, way_),
                       .local = value_,
                       .bytes = entry_.bytes});
  if (marks_use_ && !IsLatestUsed(bucket(), way_)) {
    Control used = Control::Decode(entry_.control);
    used.stamp = NextStamp(bucket());
    CompareSwap(way_, entry_.control, used.word(), &buffers_.ignored);
  }
  // A process that put a value may have died before it removed the older one.
  if (const auto older = OlderThan(bucket(), key_, entry_.sequence, way_)) {
    Free(*older, &buffers_.found);
  }
}

void GetSteps::Verify() {
  if (secret_.Check(entry_, secret_.HashValue(value_, entry_.bytes)) == entry_.check) {
    return End(entry_.bytes);
  }
  if (!MayRepeat()) return;
  wrong_check_ = entry_.check;
  stage_ = Stage::kBucket;
  ReadBucket();
}

// Put --------------------------------------------------------------------------------------------

void PutSteps::Advance() {
  switch (stage_) {
    case Stage::kBegin:
      stage_ = Stage::kBucket;
      return ReadBucket();
    case Stage::kBucket:
      return Claim();
    case Stage::kClaimed:
      if (buffers_.found == expected_) return Write();
      if (!MayRepeat()) return;
      stage_ = Stage::kBucket;
      return ReadBucket();
    case Stage::kWritten:
      stage_ = Stage::kPublished;
      {
        Control valid = claimed_;
        valid.state = EntryState::kValid;
        CompareSwap(way_, claimed_.word(), valid.word(), &buffers_.found);
      }
      return;
    case Stage::kPublished:
      if (buffers_.found == claimed_.word()) {
        evicted_ += evicts_ ? 1 : 0;
        stage_ = Stage::kTidy;
      } else {
        // Values of many other keys came meanwhile, and one of them has got the entry.
        if (!MayRepeat()) return;
        stage_ = Stage::kBucket;
      }
      return ReadBucket();
    case Stage::kTidy:
      return Tidy();
    case Stage::kTidied:
      if (!MayRepeat()) return;
      stage_ = Stage::kTidy;
      return ReadBucket();
  }
}

void PutSteps::Claim() {
  const auto latest = Latest(bucket(), key_);
  way_ = Victim(bucket());
  expected_ = bucket()[way_].control;
  const Control before = Control::Decode(expected_);
  if (mode_ == PutMode::kRestore) {
    if (latest || before.state != EntryState::kFree) return End(0);
    sequence_ = 0;
  } else {
    sequence_ = latest ? bucket()[*latest].sequence + 1 : 1;
  }
  evicts_ = before.state == EntryState::kValid && !Holds(bucket()[way_], key_);
  claimed_ = {EntryState::kWriting, (before.version + 1) & Control::kVersions, NextStamp(bucket())};
  stage_ = Stage::kClaimed;
  CompareSwap(way_, expected_, claimed_.word(), &buffers_.found);
}

void PutSteps::Write() {
  Entry& body = buffers_.body;
  body = {};
  body.key = key_;
  body.sequence = sequence_;
  body.bytes = bytes_;
  body.version = claimed_.version;
  body.check = secret_.Check(body, value_hash_);
  stage_ = Stage::kWritten;
  commands_.push_back({.kind = Command::Kind::kWrite,
                       .offset = shape_.BlockOffset(bucket_, way_),
                       .local = value_,
                       .bytes = bytes_});
  commands_.push_back({.kind = Command::Kind::kWrite,
                       .offset = shape_.EntryOffset(bucket_, way_) + kBodyOffset,
                       .local = Bytes(&body) + kBodyOffset,
                       .bytes = kBodyBytes});
}

// Two processes that put values of one key at the same time both come here with their value
// published: the later one by sequence number and way stays, whoever looks first.
void PutSteps::Tidy() {
  if (const auto older = OlderThan(bucket(), key_, sequence_, way_)) {
    stage_ = Stage::kTidied;
    return Free(*older, &buffers_.found);
  }
  const auto latest = Latest(bucket(), key_);
  const bool mine = Holds(bucket()[way_], key_) && bucket()[way_].version == claimed_.version;
  if (latest && mine && *latest != way_) {
    stage_ = Stage::kTidied;
    return Free(way_, &buffers_.found);
  }
  End(bytes_);
}

// Remove and find --------------------------------------------------------------------------------

void RemoveSteps::Advance() {
  if (stage_ == Stage::kBucket) {
    const auto latest = Latest(bucket(), key_);
    if (!latest) return End(removed_ ? 1 : 0);
    freed_ = bucket()[*latest].control;
    stage_ = Stage::kFreed;
    return Free(*latest, &buffers_.found);
  }
  if (stage_ == Stage::kFreed) {
    removed_ = removed_ || buffers_.found == freed_;
    if (!MayRepeat()) return;
  }
  stage_ = Stage::kBucket;
  ReadBucket();
}

void ScanSteps::Advance() {
  if (begun_) {
    copy_ = bucket();
    return End(1);
  }
  begun_ = true;
  ReadBucket();
}

void FindSteps::Advance() {
  if (begun_) return End(Latest(bucket(), key_) ? 1 : 0);
  begun_ = true;
  ReadBucket();
}

}  // namespace rocegw::far
