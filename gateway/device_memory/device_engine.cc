// SPDX-License-Identifier: Apache-2.0
#include "gateway/device_memory/device_engine.h"

#include <sched.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <ctime>
#include <string>

#include "gateway/base/timing/monotonic_clock.h"
#include "gateway/memory/direct_copy.h"

namespace rocegw::device_memory {

StatusOr<std::shared_ptr<DeviceEngine>> DeviceEngine::Open(std::shared_ptr<const Driver> driver,
                                                           Wish wish) {
  std::shared_ptr<DeviceEngine> engine(new DeviceEngine(std::move(driver), std::move(wish)));
  Status prepared = engine->MakeContext();
  if (prepared.ok()) prepared = engine->Prepare();
  if (!prepared.ok()) return prepared;
  return engine;
}

Status DeviceEngine::MakeContext() {
  auto device = driver_->Find(wish_.device);
  if (!device.ok()) return device.status();
  ordinal_ = *device;
  context_ = wish_.context;
  if (context_ != nullptr) return OkStatus();
  if (driver_->create_context(&context_, 0, ordinal_) != kCuSuccess) {
    context_ = nullptr;
    return driver_->Error(ENOMEM, "no context");
  }
  // A new context is the current one of the thread that made it.
  CuContext popped = nullptr;
  driver_->pop_context(&popped);
  return OkStatus();
}

Status DeviceEngine::Prepare() {
  const CurrentContext current(*driver_, context_);
  void* staging = nullptr;
  const bool prepared =
      current.ok() && driver_->create_stream(&stream_, kCuStreamNonBlocking) == kCuSuccess &&
      driver_->create_event(&event_, kCuEventDisableTiming) == kCuSuccess &&
      driver_->allocate_host(&staging, kStagingBytes, kCuHostPortable) == kCuSuccess;
  if (!prepared) return driver_->Error(ENOMEM, "no stream, event or pinned memory");
  staging_ = static_cast<uint8_t*>(staging);
  return OkStatus();
}

DeviceEngine::~DeviceEngine() { End(); }

bool DeviceEngine::IsFor(const CuUuid& device, CuContext context) const {
  return std::memcmp(&wish_.device, &device, sizeof device) == 0 && wish_.context == context;
}

void DeviceEngine::End() {
  if (ended_) return;
  ended_ = true;
  bool freed = true;
  if (context_ != nullptr) Call(wish_.calls, [&] { freed = Free(); });
  if (wish_.costs != nullptr && !freed) wish_.costs->Keep();
  wish_.costs.reset();
}

bool DeviceEngine::Free() {
  const std::lock_guard<std::mutex> lock(in_use_);
  Loss loss = loss_.exchange(Loss::kFailed, std::memory_order_acq_rel);
  if (loss == Loss::kSilent) {
    // The copies may have ended since.
    const CurrentContext current(*driver_, context_);
    const CuResult result = current.ok() ? driver_->query_event(event_) : kCuNotReady;
    if (result == kCuNotReady) return false;
    loss = result == kCuSuccess ? Loss::kNone : Loss::kFailed;
  }
  bool freed = true;
  {
    const CurrentContext current(*driver_, context_);
    // Calls in a context that failed do nothing; its end frees all that it had.
    if (current.ok() && loss == Loss::kNone) {
      if (event_ != nullptr) driver_->destroy_event(event_);
      if (stream_ != nullptr) driver_->destroy_stream(stream_);
      if (staging_ != nullptr) freed = driver_->free_host(staging_) == kCuSuccess;
    } else if (wish_.context != nullptr) {
      // The program ends, or has ended, its context.
      freed = false;
    }
  }
  if (wish_.context == nullptr) freed = driver_->destroy_context(context_) == kCuSuccess;
  if (wish_.primary) driver_->release_primary(ordinal_);
  return freed;
}

size_t DeviceEngine::Execute(std::span<memory::MemoryOp> ops, CuPointer memory, uint64_t address) {
  if (lost()) return 0;
  size_t done = 0;
  Call(wish_.calls, [&] { done = ExecuteHere(ops, memory, address); });
  return done;
}

size_t DeviceEngine::ExecuteHere(std::span<memory::MemoryOp> ops, CuPointer memory,
                                 uint64_t address) {
  const std::lock_guard<std::mutex> lock(in_use_);
  if (lost()) return 0;
  const CurrentContext current(*driver_, context_);
  if (!current.ok()) {
    loss_.store(Loss::kFailed, std::memory_order_release);
    return 0;
  }
  Cursor done;
  while (true) {
    while (done.op < ops.size() && !ops[done.op].is_atomic() &&
           done.offset == ops[done.op].length) {
      done = {done.op + 1, 0};
    }
    if (done.op == ops.size() || ops[done.op].is_atomic()) return done.op;
    bool failed = false;
    const Cursor begun = Begin(ops, done, memory, address, &failed);
    // Copies that were begun must end before staging memory is used again.
    if (!Await()) return done.op;
    TakeReads(ops, done, begun);
    done = begun;
    if (failed) return done.op;
  }
}

DeviceEngine::Cursor DeviceEngine::Begin(std::span<memory::MemoryOp> ops, Cursor from,
                                         CuPointer memory, uint64_t address, bool* failed) {
  size_t staged = 0;
  while (from.op < ops.size() && staged < kStagingBytes && !ops[from.op].is_atomic()) {
    const memory::MemoryOp& op = ops[from.op];
    // The published word is a copy of its own, which the stream executes after the others.
    const uint32_t head = op.length - (op.publish ? memory::PublishTail(op) : 0);
    const uint32_t end = from.offset < head ? head : op.length;
    const auto length =
        static_cast<uint32_t>(std::min<size_t>(end - from.offset, kStagingBytes - staged));
    if (length != 0) {
      uint8_t* const stage = staging_ + staged;
      const CuPointer at = memory + (op.address - address) + from.offset;
      CuResult result = kCuSuccess;
      if (op.kind == memory::OpKind::kRead) {
        result = driver_->copy_to_host(stage, at, length, stream_);
      } else {
        std::memcpy(stage, op.buffer + from.offset, length);
        result = driver_->copy_to_device(at, stage, length, stream_);
      }
      if (result != kCuSuccess) {
        *failed = true;
        return from;
      }
      staged += length;
      from.offset += length;
    }
    if (from.offset == op.length) from = {from.op + 1, 0};
  }
  return from;
}

bool DeviceEngine::Await() {
  CuResult result = driver_->record_event(event_, stream_);
  if (result == kCuSuccess) {
    const TimePoint begun = MonotonicNow();
    result = driver_->query_event(event_);
    for (uint32_t round = 0; result == kCuNotReady && MonotonicNow() - begun < wish_.patience;
         ++round) {
      // Small copies take microseconds. Longer ones are no reason to keep a processor busy.
      if (round < 200) {
        ::sched_yield();
      } else {
        const timespec pause{0, 20'000};
        ::nanosleep(&pause, nullptr);
      }
      result = driver_->query_event(event_);
    }
  }
  if (result != kCuSuccess) {
    loss_.store(result == kCuNotReady ? Loss::kSilent : Loss::kFailed, std::memory_order_release);
  }
  return result == kCuSuccess;
}

void DeviceEngine::TakeReads(std::span<memory::MemoryOp> ops, Cursor from, Cursor to) {
  size_t staged = 0;
  for (; from.op < to.op || (from.op == to.op && from.offset < to.offset);
       from = {from.op + 1, 0}) {
    const memory::MemoryOp& op = ops[from.op];
    const uint32_t end = from.op == to.op ? to.offset : op.length;
    if (op.kind == memory::OpKind::kRead) {
      std::memcpy(op.buffer + from.offset, staging_ + staged, end - from.offset);
    }
    staged += end - from.offset;
  }
}

}  // namespace rocegw::device_memory
