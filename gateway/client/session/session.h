// SPDX-License-Identifier: Apache-2.0
// Attachment of the process to its gateway: one SOCK_SEQPACKET connection, made at first use, which
// carries requests and replies in order (docs/develop/abi.md), and the shared memory received
// through it. Objects of a session hold a reference to it; it outlives the connection. A session is
// dead when the daemon is gone, when the program closed one of its descriptors, or in a forked
// child: its objects then refuse work with EIO, and destroying them only frees memory. A new
// session begins at the next first use. A session without objects ends, so the library keeps
// nothing open that no object of the program needs.
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
#include "gateway/client/session/message_rings.h"

namespace rocegw::client {

// Returns the errno for a request that the daemon is too old to know.
inline int OfAnyDaemon(int error) { return error == ENOSYS ? EOPNOTSUPP : error; }

class Session {
 public:
  // Returns the current session with a reference for the caller, and attaches if there is none;
  // nullptr and errno if no gateway can be reached.
  static Session* Acquire();
  // Returns the errno with which a gateway refused this program at the last attempt; 0: no refusal.
  static int Refusal();
  void AddReference();
  void Release();

  // Sends `request` (this fills in its header) and waits for the answer: stores at most
  // `reply_size` bytes and zero-fills missing ones. A descriptor in the answer goes to *descriptor
  // (-1: none), or is closed without it. `send_descriptor` is sent with the request unless it is
  // -1.
  int Call(uint32_t type, rocegw_request* request, uint32_t size, rocegw_reply* reply,
           uint32_t reply_size, int* descriptor, int send_descriptor);

  template <typename Request, typename Reply>
  int Call(uint32_t type, Request* request, Reply* reply, int* descriptor = nullptr,
           int send_descriptor = -1) {
    return Call(type, reinterpret_cast<rocegw_request*>(request), sizeof(Request),
                reinterpret_cast<rocegw_reply*>(reply), sizeof(Reply), descriptor, send_descriptor);
  }
  // Creates an object with a descriptor of events, which then belongs to the program: blocking, as
  // programs expect. EPROTO if the answer has none.
  template <typename Request>
  int CallForEvents(uint32_t type, Request* request, uint32_t* handle, int* events) {
    return CallForEvents(type, reinterpret_cast<rocegw_request*>(request), sizeof(Request), handle,
                         events);
  }
  int CallForEvents(uint32_t type, rocegw_request* request, uint32_t size, uint32_t* handle,
                    int* events);
  // Sends a request that names one object and returns only success.
  int CallObject(uint32_t type, uint32_t handle);
  // Sends a request without an answer, for daemons since minor 7: 0, or EIO if the session is known
  // to be dead. Does not wait for a thread in a call.
  int Tell(uint32_t type, rocegw_request* request, uint32_t size);
  template <typename Request>
  int Tell(uint32_t type, Request* request) {
    return Tell(type, reinterpret_cast<rocegw_request*>(request), sizeof(Request));
  }
  int TellObject(uint32_t type, uint32_t handle);
  // Destroys an object like CallObject; a dead session has none any more, which counts as success.
  int CallDestroy(uint32_t type, uint32_t handle);

  bool dead();
  // Returns true if the session is known to be dead; for frequent checks.
  bool known_dead() const {
    return __atomic_load_n(&broken_, __ATOMIC_RELAXED) ||
           __atomic_load_n(&wake_lost_, __ATOMIC_RELAXED) != 0;
  }
  // The session belongs to the parent process and was never alive in this one.
  bool inherited() const { return inherited_; }
  // Checks the connection without sending. Returns true if the daemon is gone.
  bool CheckHungUp();
  // Handles the end of an event channel: the daemon ends all of them at once.
  void OnChannelEnd();

  LocationResolver resolver();
  // Returns the wake-up line of a worker; false if it was not announced.
  bool FindWorker(uint32_t worker, const rocegw_worker_line** line, int* wake_fd);
  // Set to 1 by a thread that finds that the program closed the eventfd of a worker.
  uint32_t* wake_lost() { return &wake_lost_; }

  // Number of the session in this process; unique.
  uint32_t number() const { return number_; }
  const rocegw_hello_reply& welcome() const { return welcome_; }
  KeyTable& keys() { return keys_; }
  AhCredits& ah_credits() { return ah_credits_; }
  // Descriptor of /dev/userfaultfd, opened by the daemon, or -1.
  int userfaultfd_device() const {
    return IsStillOwn(userfaultfd_device_) ? userfaultfd_device_.number : -1;
  }

  // Fork handlers (fork.cc). In the child the session is cut off: descriptors are closed and shared
  // memory is replaced by private zeros, so that rings may still be accessed without any effect.
  static void LockForFork();
  static void UnlockAfterFork();
  static void CutOffInChild();

 private:
  struct Chunk;
  struct Worker;
  struct PendingCall;
  struct Incoming;

  static Session* Create(uint32_t number);
  static Session* Attach();  // requires the list lock, and releases it while it waits
  int Begin();               // attaches; an errno value
  void Destroy();            // requires the list lock
  bool HasSocket();
  void CloseDescriptors();
  int Connect();
  int OpenOwnMemory();
  int Greet();
  int Send(const void* message, uint32_t size, int descriptor);  // requires the send lock
  int SendBySocket(const void* message, uint32_t size, int descriptor);
  int Receive(Incoming* incoming);
  long ReceiveBySocket(Incoming* incoming, int flags);
  int Await(PendingCall* call);
  void AwaitInRing(PendingCall* call);
  void ReadAnswers(PendingCall* reader);
  void BeginAwaiting(PendingCall* call);  // requires the lock
  void BeginRings();                      // requires the lock
  int TakeFromRing();
  int TakeMessages(bool look);
  int TakeMessage(Incoming* incoming);
  int TakeAnswer(const void* message, uint32_t size, int* descriptor);
  void SetAnswered(PendingCall* call);
  void FailAll(int error);
  void UseRings();  // unless another thread does, or did
  void AskForRings();
  int TakeAnnouncement(const void* message, uint32_t size, int* descriptor);
  int AddChunk(const rocegw_chunk_announcement& announcement, int descriptor);
  int AddWorker(const rocegw_worker_announcement& announcement, int* descriptor);
  void Break(const char* reason);
  void CutOff();
  static void* Resolve(void* session, const rocegw_location& location, uint64_t need);

  pthread_mutex_t lock_;       // guards calls in progress, chunks and workers
  pthread_mutex_t send_lock_;  // orders requests; taken before lock_
  PendingCall* first_call_;    // calls without an answer yet, in the order sent
  bool being_read_;            // a waiting thread reads the socket for all
  OwnDescriptor socket_;
  uint32_t references_;
  uint32_t number_;
  bool broken_;
  uint32_t wake_lost_;
  bool refused_;                                  // the greeting was answered with an error
  char refusal_[sizeof(rocegw_refusal::reason)];  // the gateway's reason; may be empty
  bool inherited_;
  pid_t process_;
  uint32_t* fork_mark_;  // 0 in a forked child; nullptr: not known
  Session* older_;       // list of all sessions with references
  uint64_t last_request_;
  MessageRings rings_;
  uint64_t rings_wanted_at_;  // number of the request with which to ask for rings
  bool asks_for_rings_;       // a thread does
  rocegw_hello_reply welcome_;
  OwnDescriptor userfaultfd_device_;
  Chunk* chunks_;
  uint32_t chunk_count_;
  Worker* workers_;
  uint32_t worker_count_;
  KeyTable keys_;
  AhCredits ah_credits_;
};

// Path to attach to: ROCEGW_SOCKET or the default; with the gateway in this process its address
// instead.
const char* AttachPath();

}  // namespace rocegw::client
