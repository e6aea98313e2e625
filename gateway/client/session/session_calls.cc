// SPDX-License-Identifier: Apache-2.0
// Requests and their answers. Threads send while others wait; answers come in the order of the
// requests. One of the waiting threads reads for all until it has its own answer; then the next one
// reads.
#include <linux/futex.h>
#include <pthread.h>

#include <cerrno>
#include <cstring>

#include "gateway/client/process/raw_syscall.h"
#include "gateway/client/session/incoming.h"
#include "gateway/client/session/session.h"

namespace rocegw::client {

namespace {

constexpr int kMaxErrno = 4095;

constexpr uint32_t kMinorOfRings = 18;
// Requests between a refusal of rings, or their end, and the next attempt.
constexpr uint64_t kRequestsBetweenAttempts = 1024;

// State of a call; each thread waits on its own.
enum CallState : uint32_t { kWaits, kReads, kIsAnswered };

void SetState(uint32_t* state, CallState to) { __atomic_store_n(state, to, __ATOMIC_RELEASE); }

// The call may have returned already: a thread that waits there by then checks again.
void Wake(const uint32_t* state) {
  RawSyscall(SYS_futex, state, FUTEX_WAKE_PRIVATE, 1, nullptr, nullptr, 0);
}

}  // namespace

struct Session::PendingCall {
  uint32_t type;
  uint64_t request_id;
  rocegw_reply* reply;
  uint32_t reply_size;
  int* descriptor;  // nullptr: not wanted
  int broken;       // errno: the session is lost
  uint32_t state;   // enum CallState
  PendingCall* next;
};

// Ends all calls with an error, because the session is lost. Requires the lock; the reading thread
// notices by itself.
void Session::FailAll(int error) {
  Break(strerror(error));
  while (PendingCall* const call = first_call_) {
    first_call_ = call->next;
    call->broken = error;
    SetState(&call->state, kIsAnswered);
    Wake(&call->state);
  }
}

// Requires the lock.
int Session::TakeAnswer(const void* message, uint32_t size, int* descriptor) {
  const auto* answer = static_cast<const rocegw_reply*>(message);
  if (answer->type >= ROCEGW_MSG_CHUNK) return TakeAnnouncement(message, size, descriptor);
  PendingCall* const call = first_call_;
  // A refusal may come before the greeting was read.
  const bool is_its =
      call != nullptr && answer->type == call->type &&
      (answer->request_id == call->request_id ||
       (call->type == ROCEGW_MSG_HELLO && answer->request_id == 0 && answer->error != 0));
  if (!is_its) {
    CloseIfOpen(descriptor);
    return EPROTO;
  }
  first_call_ = call->next;
  memset(static_cast<void*>(call->reply), 0, call->reply_size);
  memcpy(static_cast<void*>(call->reply), message,
         size < call->reply_size ? size : call->reply_size);
  if (answer->type == ROCEGW_MSG_USE_RINGS && answer->error == 0)
    rings_.Map(*descriptor, static_cast<const rocegw_rings_reply*>(message)->bytes);
  if (answer->error == 0 && call->descriptor != nullptr) {
    *call->descriptor = *descriptor;
  } else {
    CloseIfOpen(descriptor);
  }
  const bool waits = __atomic_load_n(&call->state, __ATOMIC_RELAXED) == kWaits;
  SetState(&call->state, kIsAnswered);
  if (waits) Wake(&call->state);
  return 0;
}

// Handles a message, and what was sent before it. Requires the lock.
int Session::TakeMessages(Incoming* incoming) {
  if (!incoming->by_ring) {
    alignas(16) unsigned char earlier[ROCEGW_RING_MESSAGE_MAX];
    uint32_t size = 0;
    int none = -1;
    while (rings_.TakeAnswer(earlier, &size)) {
      if (const int error = size < sizeof(rocegw_reply) ? EPROTO : TakeAnswer(earlier, size, &none))
        return error;
    }
    rings_.CountSocketAnswer();
  }
  return TakeAnswer(incoming->message, incoming->size, &incoming->descriptor);
}

void Session::ReadAnswers(PendingCall* reader) {
  Incoming incoming;
  // A client that is refused at once finds the connection closed with the reason in it; the
  // connection's error comes once, before it.
  bool look_again = reader->type == ROCEGW_MSG_HELLO;
  for (bool mine = false; !mine;) {
    int error = Receive(&incoming);
    if (look_again && error == ECONNRESET) {
      look_again = false;
      continue;
    }
    pthread_mutex_lock(&lock_);
    if (error == 0) error = TakeMessages(&incoming);
    if (error != 0) {
      CloseIfOpen(&incoming.descriptor);
      FailAll(error);
    }
    // A thread whose request could not be sent may have failed this call.
    mine = __atomic_load_n(&reader->state, __ATOMIC_RELAXED) == kIsAnswered;
    PendingCall* const next = mine ? first_call_ : nullptr;
    being_read_ = !mine || next != nullptr;
    if (next != nullptr) SetState(&next->state, kReads);
    pthread_mutex_unlock(&lock_);
    if (next != nullptr) Wake(&next->state);
  }
}

// Returns 0, or why the session is lost.
int Session::Await(PendingCall* call) {
  for (;;) {
    const uint32_t state = __atomic_load_n(&call->state, __ATOMIC_ACQUIRE);
    if (state == kIsAnswered) return call->broken;
    if (state == kReads) {
      ReadAnswers(call);
    } else {
      RawSyscall(SYS_futex, &call->state, FUTEX_WAIT_PRIVATE, kWaits, nullptr, nullptr, 0);
    }
  }
}

int Session::Call(uint32_t type, rocegw_request* request, uint32_t size, rocegw_reply* reply,
                  uint32_t reply_size, int* descriptor, int send_descriptor) {
  if (descriptor != nullptr) *descriptor = -1;
  if (dead()) return EIO;
  PendingCall call = {type, 0, reply, reply_size, descriptor, 0, kWaits, nullptr};
  request->type = type;
  request->length = size;
  pthread_mutex_lock(&send_lock_);
  pthread_mutex_lock(&lock_);
  if (__atomic_load_n(&broken_, __ATOMIC_RELAXED)) {
    pthread_mutex_unlock(&lock_);
    pthread_mutex_unlock(&send_lock_);
    return EIO;
  }
  request->request_id = call.request_id = ++last_request_;
  PendingCall** last = &first_call_;
  while (*last != nullptr) last = &(*last)->next;
  *last = &call;
  if (!being_read_) {
    being_read_ = true;
    call.state = kReads;
  }
  pthread_mutex_unlock(&lock_);
  // Without that lock: the gateway may need its answers read before it accepts a request.
  const int sent = Send(request, size, send_descriptor);
  if (type == ROCEGW_MSG_USE_RINGS) rings_.RestartCount();
  const bool wants_rings = request->request_id >= rings_wanted_at_ && !rings_.open();
  pthread_mutex_unlock(&send_lock_);
  const bool refused_at_once = type == ROCEGW_MSG_HELLO && (sent == EPIPE || sent == ECONNRESET);
  if (sent != 0 && !refused_at_once) {
    pthread_mutex_lock(&lock_);
    if (__atomic_load_n(&call.state, __ATOMIC_RELAXED) == kReads) being_read_ = false;
    FailAll(sent);
    pthread_mutex_unlock(&lock_);
  }
  if (const int broken = Await(&call)) {
    // During the greeting the reason matters (EACCES, ECONNREFUSED); later programs always get EIO.
    return welcome_.major == 0 ? broken : EIO;
  }
  if (wants_rings && welcome_.minor >= kMinorOfRings) UseRings();
  const int result = reply->error;
  if (result == 0) return 0;
  refused_ = type == ROCEGW_MSG_HELLO;
  return result > 0 && result <= kMaxErrno ? result : EIO;
}

void Session::UseRings() {
  if (__atomic_exchange_n(&asks_for_rings_, true, __ATOMIC_ACQUIRE)) return;
  // Another thread may have asked since the caller looked.
  pthread_mutex_lock(&send_lock_);
  const bool wanted = last_request_ >= rings_wanted_at_ && !rings_.open();
  pthread_mutex_unlock(&send_lock_);
  if (wanted) AskForRings();
  __atomic_store_n(&asks_for_rings_, false, __ATOMIC_RELEASE);
}

void Session::AskForRings() {
  rocegw_request request = {};
  rocegw_rings_reply reply;
  const int error = Call(ROCEGW_MSG_USE_RINGS, &request, &reply);
  pthread_mutex_lock(&send_lock_);
  rings_wanted_at_ = last_request_ + kRequestsBetweenAttempts;
  if (error == 0) rings_.Open();
  pthread_mutex_unlock(&send_lock_);
}

int Session::CallForEvents(uint32_t type, rocegw_request* request, uint32_t size, uint32_t* handle,
                           int* events) {
  rocegw_object_reply reply;
  *events = -1;
  const int error =
      Call(type, request, size, reinterpret_cast<rocegw_reply*>(&reply), sizeof(reply), events, -1);
  if (error != 0) return error;
  if (*events < 0) return EPROTO;
  const long flags = RawFcntl(*events, F_GETFL, 0);
  if (flags >= 0) RawFcntl(*events, F_SETFL, flags & ~O_NONBLOCK);
  *handle = reply.handle;
  return 0;
}

int Session::CallObject(uint32_t type, uint32_t handle) {
  rocegw_object_request request = {};
  request.handle = handle;
  rocegw_object_reply reply;
  return Call(type, &request, &reply);
}

int Session::Tell(uint32_t type, rocegw_request* request, uint32_t size) {
  request->type = type;
  request->length = size;
  request->request_id = 0;
  if (dead()) return EIO;
  pthread_mutex_lock(&send_lock_);
  const int error = Send(request, size, -1);
  pthread_mutex_unlock(&send_lock_);
  if (error != 0) Break(strerror(error));
  return error != 0 ? EIO : 0;
}

int Session::TellObject(uint32_t type, uint32_t handle) {
  rocegw_object_request request = {};
  request.handle = handle;
  return Tell(type, &request);
}

int Session::CallDestroy(uint32_t type, uint32_t handle) {
  const int error = CallObject(type, handle);
  return error != 0 && dead() ? 0 : error;
}

}  // namespace rocegw::client
