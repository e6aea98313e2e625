// SPDX-License-Identifier: Apache-2.0
// Requests and their answers. Threads send while others wait; answers come in the order of the
// requests. One of the waiting threads reads the socket for all until it has its own answer; then
// the next one reads. With rings each thread sleeps for itself, and one that wakes up takes the
// answers of all.
#include <linux/futex.h>
#include <pthread.h>

#include <cerrno>
#include <cstring>

#include "gateway/client/process/raw_syscall.h"
#include "gateway/client/session/incoming.h"
#include "gateway/client/session/linger.h"
#include "gateway/client/session/session.h"

namespace rocegw::client {

namespace {

constexpr int kMaxErrno = 4095;

constexpr uint32_t kMinorOfRings = 18;
// Requests between a refusal of rings, or their end, and the next attempt.
constexpr uint64_t kRequestsBetweenAttempts = 1024;

// The daemon wakes threads that wait for answers in the ring. When it is killed it does not, and
// they look at the socket so often.
constexpr int64_t kLookAtSocketNs = 100000000;
// Wait for an answer that the daemon has counted and not sent yet, or that shares a futex.
constexpr int64_t kShortWaitNs = 1000000;

// State of a call; each thread waits on its own.
enum CallState : uint32_t {
  kWaits,  // another thread reads the socket
  kReads,  // this thread reads the socket for all
  kInRing,
  kIsAnswered
};

void SetState(uint32_t* state, CallState to) { __atomic_store_n(state, to, __ATOMIC_SEQ_CST); }

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

// Requires the lock. The thread may return from its call at once.
void Session::SetAnswered(PendingCall* call) {
  const uint32_t state = __atomic_load_n(&call->state, __ATOMIC_RELAXED);
  const uint64_t request = call->request_id;
  SetState(&call->state, kIsAnswered);
  if (state == kWaits) Wake(&call->state);
  if (state == kInRing) rings_.EndWait(request);
}

// Ends all calls with an error, because the session is lost. Requires the lock; the reading thread
// notices by itself.
void Session::FailAll(int error) {
  Break(strerror(error));
  while (PendingCall* const call = first_call_) {
    first_call_ = call->next;
    call->broken = error;
    SetAnswered(call);
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
  if (answer->type == ROCEGW_MSG_USE_RINGS && answer->error == 0) {
    if (!rings_.Map(*descriptor, static_cast<const rocegw_rings_reply*>(message)->bytes))
      return EPROTO;
    BeginRings();
  }
  if (answer->error == 0 && call->descriptor != nullptr) {
    *call->descriptor = *descriptor;
  } else {
    CloseIfOpen(descriptor);
  }
  SetAnswered(call);
  return 0;
}

// Handles a message of the socket, and answers in the ring, which are older. Requires the lock.
int Session::TakeMessage(Incoming* incoming) {
  if (const int error = TakeFromRing()) return error;
  rings_.CountSocketAnswer();
  return TakeAnswer(incoming->message, incoming->size, &incoming->descriptor);
}

// Chooses how the call's thread waits.
void Session::BeginAwaiting(PendingCall* call) {
  if (rings_.in_use()) return SetState(&call->state, kInRing);
  SetState(&call->state, being_read_ ? kWaits : kReads);
  being_read_ = true;
}

// Makes all threads wait for the ring.
void Session::BeginRings() {
  being_read_ = false;
  for (PendingCall* call = first_call_; call != nullptr; call = call->next) {
    const bool waits = __atomic_load_n(&call->state, __ATOMIC_RELAXED) == kWaits;
    SetState(&call->state, kInRing);
    if (waits) Wake(&call->state);
  }
}

void Session::ReadAnswers(PendingCall* reader) {
  Incoming incoming;
  // A client that is refused at once finds the connection closed with the reason in it; the
  // connection's error comes once, before it.
  bool look_again = reader->type == ROCEGW_MSG_HELLO;
  for (bool reads = true; reads;) {
    int error = Receive(&incoming);
    if (look_again && error == ECONNRESET) {
      look_again = false;
      continue;
    }
    pthread_mutex_lock(&lock_);
    if (error == 0) error = TakeMessage(&incoming);
    if (error != 0) {
      CloseIfOpen(&incoming.descriptor);
      FailAll(error);
    }
    // A thread whose request could not be sent may have failed this call.
    reads = __atomic_load_n(&reader->state, __ATOMIC_RELAXED) == kReads;
    // With new rings (BeginRings) no thread reads.
    PendingCall* const next = !reads && being_read_ ? first_call_ : nullptr;
    being_read_ = reads || next != nullptr;
    if (next != nullptr) SetState(&next->state, kReads);
    pthread_mutex_unlock(&lock_);
    if (next != nullptr) Wake(&next->state);
  }
}

// Waits until the call is answered, or the daemon has closed the rings.
void Session::AwaitInRing(PendingCall* call) {
  const uint64_t request = call->request_id;
  bool look = false;
  for (;;) {
    pthread_mutex_lock(&lock_);
    // Behind the end of the rings there are no further answers in them.
    const bool in_use = rings_.in_use();
    const int error = in_use ? TakeMessages(look) : TakeFromRing();
    if (error != 0 && error != EAGAIN) FailAll(error);
    bool in_ring = __atomic_load_n(&call->state, __ATOMIC_RELAXED) == kInRing;
    if (in_ring && !in_use) {
      BeginAwaiting(call);
      in_ring = false;
    }
    const bool alone = in_ring && request - first_call_->request_id < ROCEGW_RING_SLOTS;
    pthread_mutex_unlock(&lock_);
    if (!in_ring) return;
    const auto goes_on = [&] {
      return __atomic_load_n(&call->state, __ATOMIC_SEQ_CST) != kInRing || rings_.HasAnswer() ||
             (error == 0 && rings_.SocketHasAnswers()) || !rings_.in_use();
    };
    if (Linger(goes_on)) continue;
    if (alone) rings_.BeginWait(request);
    if (goes_on()) continue;
    const bool soon = error == EAGAIN || !alone;
    look = !rings_.Wait(request, soon ? kShortWaitNs : kLookAtSocketNs) && !soon;
  }
}

// Returns 0, or why the session is lost.
int Session::Await(PendingCall* call) {
  for (;;) {
    switch (__atomic_load_n(&call->state, __ATOMIC_ACQUIRE)) {
      case kIsAnswered:
        return call->broken;
      case kReads:
        ReadAnswers(call);
        break;
      case kInRing:
        AwaitInRing(call);
        break;
      default:
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
  BeginAwaiting(&call);
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
