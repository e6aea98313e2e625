// SPDX-License-Identifier: Apache-2.0
// The process's attachment to its gateway: one SOCK_SEQPACKET connection, made at first use, on
// which requests and replies go in turn (docs/develop/abi.md), and the shared memory that came over
// it. Objects made through a session hold a reference to it; it outlives the connection. A session
// is dead when the daemon went away, when the program closed one of its descriptors, or when this
// process is a fork's child: its objects then refuse work with EIO, and destroying them only frees
// memory. A new session begins at the next first use. Without objects a session ends: nothing of
// the library stays open that no object of the program needs.
//
// Any thread; requests are serialised. Errors are errno values; those of the daemon are passed on.
#pragma once

#include <pthread.h>
#include <sys/types.h>

#include <cerrno>
#include <cstdint>

#include "gateway/abi/rocegw_abi.h"
#include "gateway/client/process/own_descriptor.h"
#include "gateway/client/queues/ah_credits.h"
#include "gateway/client/rings/key_table.h"
#include "gateway/client/rings/map_rings.h"

namespace rocegw::client {

// The errno that programs get for a request that a daemon is too old to know.
inline int OfAnyDaemon(int error) { return error == ENOSYS ? EOPNOTSUPP : error; }

class Session {
 public:
  // The current session, attaching when there is none; nullptr and errno when no gateway can be
  // reached. The caller gets a reference.
  static Session* Acquire();
  // The errno with which a gateway refused this program when it was looked for last; 0: it did not.
  static int Refusal();
  void AddReference();
  void Release();

  // Sends `request` (its header is filled in here) and waits for the answer, of which at most
  // `reply_size` bytes are stored and the missing rest is zero. A descriptor in the answer goes to
  // *descriptor (else it is closed); -1 when there was none. `send_descriptor` travels with the
  // request when it is not -1.
  int Call(uint32_t type, rocegw_request* request, uint32_t size, rocegw_reply* reply,
           uint32_t reply_size, int* descriptor, int send_descriptor);

  template <typename Request, typename Reply>
  int Call(uint32_t type, Request* request, Reply* reply, int* descriptor = nullptr,
           int send_descriptor = -1) {
    return Call(type, reinterpret_cast<rocegw_request*>(request), sizeof(Request),
                reinterpret_cast<rocegw_reply*>(reply), sizeof(Reply), descriptor, send_descriptor);
  }
  // For objects that come with a descriptor of events, which is the program's then: blocking, as
  // programs expect, until they change it. EPROTO when the answer brings none.
  template <typename Request>
  int CallForEvents(uint32_t type, Request* request, uint32_t* handle, int* events) {
    return CallForEvents(type, reinterpret_cast<rocegw_request*>(request), sizeof(Request), handle,
                         events);
  }
  int CallForEvents(uint32_t type, rocegw_request* request, uint32_t size, uint32_t* handle,
                    int* events);
  // Requests that name one object and bring back nothing but success.
  int CallObject(uint32_t type, uint32_t handle);
  // Requests that want no answer, for daemons since minor 7: 0, or EIO when the session is dead.
  // Waits for nobody, not even for a call of another thread.
  int Tell(uint32_t type, rocegw_request* request, uint32_t size);
  template <typename Request>
  int Tell(uint32_t type, Request* request) {
    return Tell(type, reinterpret_cast<rocegw_request*>(request), sizeof(Request));
  }
  int TellObject(uint32_t type, uint32_t handle);
  // As CallObject, for taking objects away: a dead session has none any more, which is success.
  int CallDestroy(uint32_t type, uint32_t handle);

  bool dead();
  // As far as somebody has noticed; for those who ask all the time.
  bool known_dead() const {
    return __atomic_load_n(&broken_, __ATOMIC_RELAXED) ||
           __atomic_load_n(&wake_lost_, __ATOMIC_RELAXED) != 0;
  }
  // In this process the session was never alive: it belongs to the parent.
  bool inherited() const { return inherited_; }
  // Looks at the connection without sending anything; true when the daemon is gone.
  bool CheckHungUp();
  // One of its event channels has ended, which the daemon does to all of them at once.
  void OnChannelEnd();

  LocationResolver resolver();
  // The wake-up line of a worker; false when it was not announced.
  bool FindWorker(uint32_t worker, const rocegw_worker_line** line, int* wake_fd);
  // Set to 1 by whoever finds that the program closed the eventfd of a worker.
  uint32_t* wake_lost() { return &wake_lost_; }

  // Counts the sessions of this process; never twice the same.
  uint32_t number() const { return number_; }
  const rocegw_hello_reply& welcome() const { return welcome_; }
  KeyTable& keys() { return keys_; }
  AhCredits& ah_credits() { return ah_credits_; }
  // /dev/userfaultfd, opened by the daemon, or -1.
  int userfaultfd_device() const {
    return IsStillOwn(userfaultfd_device_) ? userfaultfd_device_.number : -1;
  }

  // Handlers of fork (fork.cc). The child's one cuts the session off: descriptors closed, shared
  // memory replaced by private zeros, so that rings may still be touched but reach nobody.
  static void LockForFork();
  static void UnlockAfterFork();
  static void CutOffInChild();

 private:
  struct Chunk;
  struct Worker;
  struct PendingCall;

  static Session* Create(uint32_t number);
  static Session* Attach();  // with the list locked, which it leaves while it waits
  int Begin();               // attaches; an errno value
  void Destroy();            // with the list locked
  bool HasSocket();
  void CloseDescriptors();
  int Connect();
  int Greet();
  int Send(const void* message, uint32_t size, int descriptor);
  int Receive(void* message, uint32_t* size, int* descriptor);
  int Await(PendingCall* call);
  void ReadAnswers(PendingCall* reader);
  int TakeAnswer(const void* message, uint32_t size, int* descriptor, PendingCall** answered);
  void FailAll(int error);
  int TakeAnnouncement(const void* message, uint32_t size, int* descriptor);
  int AddChunk(const rocegw_chunk_announcement& announcement, int descriptor);
  int AddWorker(const rocegw_worker_announcement& announcement, int* descriptor);
  void Break(const char* reason);
  void CutOff();
  static void* Resolve(void* session, const rocegw_location& location, uint64_t need);

  pthread_mutex_t lock_;       // calls under way; chunks and workers
  pthread_mutex_t send_lock_;  // requests with an answer; taken before the other
  PendingCall* first_call_;    // those without an answer yet, as they were sent
  bool being_read_;            // by one of them
  OwnDescriptor socket_;
  uint32_t references_;
  uint32_t number_;
  bool broken_;
  uint32_t wake_lost_;
  bool refused_;                                  // the greeting was answered with an error
  char refusal_[sizeof(rocegw_refusal::reason)];  // why, in the gateway's words; may be empty
  bool inherited_;
  pid_t process_;
  Session* older_;  // list of all sessions that still have references
  uint64_t last_request_;
  rocegw_hello_reply welcome_;
  OwnDescriptor userfaultfd_device_;
  Chunk* chunks_;
  uint32_t chunk_count_;
  Worker* workers_;
  uint32_t worker_count_;
  KeyTable keys_;
  AhCredits ah_credits_;
};

// The path that is attached to: ROCEGW_SOCKET or the default; with the gateway in this process its
// address instead.
const char* AttachPath();

}  // namespace rocegw::client
