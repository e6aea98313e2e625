// SPDX-License-Identifier: Apache-2.0
#include "gateway/client/session/session.h"

#include <fcntl.h>
#include <linux/futex.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <climits>
#include <cstdlib>
#include <cstring>

#include "gateway/abi/greeting.h"
#include "gateway/client/memory/device_memory.h"
#include "gateway/client/memory/memory_map.h"
#include "gateway/client/process/environment.h"
#include "gateway/client/process/fork.h"
#include "gateway/client/process/in_process.h"
#include "gateway/client/process/own_preload.h"
#include "gateway/client/process/raw_syscall.h"
#include "gateway/client/process/report.h"
#include "gateway/client/rings/doorbell.h"
#include "gateway/client/rings/monotonic_time.h"
#include "gateway/client/session/listener.h"

namespace rocegw::client {

namespace {

constexpr uint32_t kMaxChunks = 65536;
constexpr uint32_t kMaxWorkers = 1024;

// Most programs make fewer requests, and save nothing by rings.
constexpr uint64_t kRequestsBeforeRings = 64;

pthread_mutex_t g_lock =
    PTHREAD_MUTEX_INITIALIZER;  // guards the fields below, and reference counts
Session* g_current = nullptr;
Session* g_newest = nullptr;
uint32_t g_session_count = 0;
bool g_attaching = false;     // a thread is making a session, without the lock
uint32_t g_attach_round = 0;  // counts finished attempts; a futex
bool g_reported_unreachable = false;
int g_refusal = 0;  // errno of the last attempt if a gateway refused it
int64_t g_ask_again_at = 0;

// A refusal that took this long is not repeated soon: one call of a program looks for the gateway
// several times, and a gateway may ask others first.
constexpr int64_t kLongRefusal = 100000000;
constexpr int64_t kRefusalHolds = 1000000000;

// `reason`: the gateway's text, if it refused; may be empty.
void ReportUnreachable(int error, bool refused, const char* reason) {
  if (g_reported_unreachable) return;
  g_reported_unreachable = true;
  if (GatewayIsInProcess() && reason[0] != '\0') {
    Warn("no gateway in this process: %s", reason);
    return;
  }
  if (refused && error != EPROTONOSUPPORT) {
    Warn("the gateway at %s refuses this program: %s%s%s", AttachPath(), strerror(error),
         reason[0] != '\0' ? ": " : "", reason);
    return;
  }
  if (error == EPROTONOSUPPORT) {
    Warn(
        "the gateway at %s speaks another major version of the attach protocol than this library "
        "(%u); "
        "install the library that belongs to the gateway",
        AttachPath(), ROCEGW_ABI_MAJOR);
    return;
  }
  if (error == EACCES || error == EPERM) {
    Warn(
        "the gateway at %s cannot be reached by user %u (%s); this program sees only the machine's "
        "own RDMA devices. The pool's attach.socket_mode and attach.socket_owner say who may use "
        "its sockets: 0666 is for any user, and attach.identity decides about the programs then",
        AttachPath(), static_cast<unsigned>(geteuid()), strerror(error));
    return;
  }
  Warn(
      "no gateway at %s (%s); this program sees only the machine's own RDMA devices. "
      "Is rocegwd running, and does ROCEGW_SOCKET name its socket?",
      AttachPath(), strerror(error));
}

constexpr char kClosedByProgram[] = "the program closed a descriptor of the library";

// Memory of a forked child is cleared there, whoever makes the child.
uint32_t* MakeForkMark() {
  void* const page =
      RawMap(nullptr, sizeof(uint32_t), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (page == MAP_FAILED) return nullptr;
  if (RawAdvise(page, sizeof(uint32_t), MADV_WIPEONFORK) != 0) {
    RawUnmap(page, sizeof(uint32_t));
    return nullptr;
  }
  auto* const mark = static_cast<uint32_t*>(page);
  *mark = 1;
  return mark;
}

}  // namespace

struct Session::Chunk {
  uint8_t* base;
  uint64_t size;
  bool read_only;
};

struct Session::Worker {
  const rocegw_worker_line* line;
  int wake_fd;
};

const char* AttachPath() {
  if (GatewayIsInProcess()) {
    // Identifies a gateway, like the path of a socket.
    const char* address = Setting("ROCEGW_ADDRESS");
    return address != nullptr && address[0] != '\0' ? address : "any address";
  }
  const char* path = Setting("ROCEGW_SOCKET");
  return path != nullptr && path[0] != '\0' ? path : ROCEGW_ATTACH_SOCKET;
}

Session* Session::Acquire() {
  const char* off = Setting("ROCEGW_DISABLE");
  if (off != nullptr && off[0] == '1') {
    errno = ENODEV;
    return nullptr;
  }
  InstallForkHandlers();
  pthread_mutex_lock(&g_lock);
  for (;;) {
    if (g_current != nullptr && g_current->CheckHungUp()) g_current = nullptr;
    if (g_current != nullptr || !g_attaching) break;
    // Another thread attaches. Its session serves this thread as well.
    const uint32_t round = g_attach_round;
    pthread_mutex_unlock(&g_lock);
    RawSyscall(SYS_futex, &g_attach_round, FUTEX_WAIT_PRIVATE, round, nullptr, nullptr, 0);
    pthread_mutex_lock(&g_lock);
  }
  Session* session = g_current;
  if (session != nullptr) {
    ++session->references_;
  } else {
    session = Attach();
  }
  pthread_mutex_unlock(&g_lock);
  return session;
}

void Session::AddReference() {
  pthread_mutex_lock(&g_lock);
  ++references_;
  pthread_mutex_unlock(&g_lock);
}

void Session::Release() {
  pthread_mutex_lock(&g_lock);
  if (--references_ == 0) Destroy();
  pthread_mutex_unlock(&g_lock);
}

int Session::Refusal() {
  pthread_mutex_lock(&g_lock);
  const int error = g_refusal;
  pthread_mutex_unlock(&g_lock);
  return error;
}

Session* Session::Create(uint32_t number) {
  auto* session = static_cast<Session*>(calloc(1, sizeof(Session)));
  // Allocated for the maximum, so that the array never moves under a reader; unused entries take no
  // memory.
  auto* chunks = static_cast<Chunk*>(calloc(kMaxChunks, sizeof(Chunk)));
  if (session == nullptr || chunks == nullptr) {
    free(session);
    free(chunks);
    return nullptr;
  }
  session->chunks_ = chunks;
  pthread_mutex_init(&session->lock_, nullptr);
  pthread_mutex_init(&session->send_lock_, nullptr);
  session->socket_ = kNoDescriptor;
  session->userfaultfd_device_ = kNoDescriptor;
  session->references_ = 1;
  session->number_ = number;
  session->process_ = getpid();
  session->fork_mark_ = MakeForkMark();
  session->rings_ = MessageRings();
  session->rings_wanted_at_ = kRequestsBeforeRings;
  return session;
}

int Session::Begin() {
  const int error = Connect();
  return error != 0 ? error : Greet();
}

// Connects and greets without the lock: fork takes it, and the daemon may be slow.
Session* Session::Attach() {
  const int64_t begin = MonotonicNs();
  if (g_refusal != 0 && begin < g_ask_again_at) {
    errno = g_refusal;
    return nullptr;
  }
  g_refusal = 0;
  Session* session = Create(++g_session_count);
  if (session == nullptr) {
    errno = ENOMEM;
    return nullptr;
  }
  // Listed at once, so that a forked child closes its socket.
  session->older_ = g_newest;
  g_newest = session;
  g_attaching = true;
  pthread_mutex_unlock(&g_lock);
  const int error = session->Begin();
  pthread_mutex_lock(&g_lock);
  g_attaching = false;
  __atomic_add_fetch(&g_attach_round, 1, __ATOMIC_RELAXED);
  RawSyscall(SYS_futex, &g_attach_round, FUTEX_WAKE_PRIVATE, INT_MAX, nullptr, nullptr, 0);
  if (error != 0) {
    ReportUnreachable(error, session->refused_, session->refusal_);
    if (session->refused_) {
      g_refusal = error;
      const int64_t now = MonotonicNs();
      g_ask_again_at = now - begin < kLongRefusal ? now : now + kRefusalHolds;
    }
    session->Destroy();
    errno = error;
    return nullptr;
  }
  g_current = session;
  g_reported_unreachable = false;
  Debug("attached to %s as session %u", AttachPath(), session->welcome_.session);
  return session;
}

void Session::Destroy() {
  if (g_current == this) g_current = nullptr;
  for (Session** link = &g_newest; *link != nullptr; link = &(*link)->older_) {
    if (*link != this) continue;
    *link = older_;
    break;
  }
  CloseDescriptors();
  for (uint32_t i = 0; i < chunk_count_; ++i) {
    if (chunks_[i].base != nullptr) RawUnmap(chunks_[i].base, chunks_[i].size);
  }
  rings_.Unmap();
  if (fork_mark_ != nullptr) RawUnmap(fork_mark_, sizeof(*fork_mark_));
  // Only processes with objects query their memory map.
  if (g_newest == nullptr) ForgetMemoryMap();
  keys_.Clear();
  free(chunks_);
  free(workers_);
  pthread_mutex_destroy(&lock_);
  pthread_mutex_destroy(&send_lock_);
  free(this);
}

void Session::CloseDescriptors() {
  CloseOwn(&socket_);
  CloseOwn(&userfaultfd_device_);
  for (uint32_t i = 0; i < worker_count_; ++i) {
    const int wake_fd = workers_[i].wake_fd;
    if (wake_fd >= 0 && RawFcntl(wake_fd, F_GETSIG, 0) == kWakeMark) RawClose(wake_fd);
    workers_[i].wake_fd = -1;
  }
}

int Session::Connect() {
  if (GatewayIsInProcess()) {
    const int fd = AttachInProcess(refusal_, sizeof(refusal_));
    if (fd < 0) {
      refused_ = true;
      return -fd;
    }
    socket_ = Own(MoveAside(fd));
    return 0;
  }
  sockaddr_un address = {};
  address.sun_family = AF_UNIX;
  const char* path = AttachPath();
  if (strlen(path) >= sizeof(address.sun_path)) return ENAMETOOLONG;
  memcpy(address.sun_path, path, strlen(path));
  const int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
  if (fd < 0) return errno;
  socket_ = Own(MoveAside(fd));
  const int error = RawConnect(socket_.number, &address, sizeof(address));
  if (error != 0) CloseOwn(&socket_);
  return error;
}

// Lets a daemon of another user access registered memory. Returns -1 if the process forbids it or
// the listener must not have it.
int Session::OpenOwnMemory() {
  if (HasMoreRightsThanCaller()) return -1;
  uid_t user;
  if (!ListenerMayHaveMemory(socket_.number, &user)) {
    Warn(
        "user %d listens at %s, who is neither root, nor the user of this program, nor the owner "
        "of "
        "/run/rocegw, and does not get the memory of this program",
        static_cast<int>(user), AttachPath());
    return -1;
  }
  const long memory = RawOpen("/proc/self/mem", O_RDWR | O_CLOEXEC);
  return memory < 0 ? -1 : static_cast<int>(memory);
}

int Session::Greet() {
  rocegw_hello hello = {};
  hello.magic = ROCEGW_ABI_MAGIC;
  hello.major = ROCEGW_ABI_MAJOR;
  hello.minor = ROCEGW_ABI_MINOR;
  if (HasDeviceLibrary()) hello.flags |= ROCEGW_HELLO_DEVICES;
  FindOwnPreload(hello.own_preload, sizeof(hello.own_preload));
  int memory = OpenOwnMemory();
  union {
    rocegw_hello_reply welcome;
    rocegw_refusal refusal;
  } answer = {};
  int userfault = -1;
  const int error = Call(ROCEGW_MSG_HELLO, &hello.header, sizeof(hello), &answer.refusal.header,
                         sizeof(answer), &userfault, memory);
  CloseIfOpen(&memory);
  if (refused_) {
    memcpy(refusal_, answer.refusal.reason, sizeof(refusal_));
    refusal_[sizeof(refusal_) - 1] = '\0';
  }
  userfaultfd_device_ = Own(MoveAside(userfault));
  if (error != 0) return error;
  welcome_ = answer.welcome;
  if (welcome_.major != ROCEGW_ABI_MAJOR) return EPROTONOSUPPORT;
  welcome_.sysfs_root[sizeof(welcome_.sysfs_root) - 1] = '\0';
  return 0;
}

void Session::Break(const char* reason) {
  if (__atomic_exchange_n(&broken_, true, __ATOMIC_SEQ_CST)) return;
  Warn("session %u lost: %s", welcome_.session, reason);
  // The daemon may still run: it learns of the end by this. Not closed, since other threads may be
  // in a call.
  if (IsStillOwn(socket_)) RawSyscall(SYS_shutdown, socket_.number, SHUT_RDWR);
}

bool Session::dead() {
  // A process created by a bare clone() ran no fork handlers.
  if (!inherited_ && (fork_mark_ != nullptr ? *fork_mark_ == 0 : process_ != getpid())) CutOff();
  if (!inherited_ && __atomic_load_n(&wake_lost_, __ATOMIC_RELAXED) != 0) Break(kClosedByProgram);
  return inherited_ || __atomic_load_n(&broken_, __ATOMIC_RELAXED);
}

// Breaks the session if the program closed its socket.
bool Session::HasSocket() {
  if (IsStillOwn(socket_)) return true;
  if (!inherited_) Break(kClosedByProgram);
  return false;
}

bool Session::CheckHungUp() {
  if (dead() || !HasSocket()) return true;
  pollfd look = {socket_.number, 0, 0};
  if (RawPoll(&look, 1, 0) > 0 && (look.revents & (POLLHUP | POLLERR | POLLNVAL)) != 0) {
    Break("the gateway closed the connection");
    return true;
  }
  return false;
}

void Session::OnChannelEnd() { Break("the gateway closed the connection"); }

int Session::AddChunk(const rocegw_chunk_announcement& announcement, int descriptor) {
  if (descriptor < 0 || announcement.chunk >= kMaxChunks || announcement.size == 0) return EPROTO;
  if (announcement.chunk >= chunk_count_)
    __atomic_store_n(&chunk_count_, announcement.chunk + 1, __ATOMIC_RELAXED);
  Chunk& chunk = chunks_[announcement.chunk];
  if (chunk.base != nullptr) return EPROTO;
  const bool read_only = announcement.read_only != 0;
  void* base = RawMap(nullptr, announcement.size, read_only ? PROT_READ : PROT_READ | PROT_WRITE,
                      MAP_SHARED, descriptor, 0);
  if (base == MAP_FAILED) return ENOMEM;
  // A child without fork handlers must not write into its parent's rings.
  RawAdvise(base, announcement.size, MADV_DONTFORK);
  chunk = {static_cast<uint8_t*>(base), announcement.size, read_only};
  return 0;
}

int Session::AddWorker(const rocegw_worker_announcement& announcement, int* descriptor) {
  if (*descriptor < 0 || announcement.worker >= kMaxWorkers) return EPROTO;
  if (announcement.worker >= worker_count_) {
    const uint32_t count = announcement.worker + 4;
    auto* bigger = static_cast<Worker*>(realloc(workers_, count * sizeof(Worker)));
    if (bigger == nullptr) return ENOMEM;
    for (uint32_t i = worker_count_; i < count; ++i) bigger[i] = {nullptr, -1};
    workers_ = bigger;
    worker_count_ = count;
  }
  Worker& worker = workers_[announcement.worker];
  const void* line = resolver()(announcement.line, sizeof(rocegw_worker_line));
  if (worker.line != nullptr || line == nullptr) return EPROTO;
  const int wake_fd = MoveAside(*descriptor);
  *descriptor = wake_fd;
  if (MarkWake(wake_fd) != 0) return EPROTO;
  worker = {static_cast<const rocegw_worker_line*>(line), wake_fd};
  *descriptor = -1;
  return 0;
}

int Session::TakeAnnouncement(const void* message, uint32_t size, int* descriptor) {
  const auto* header = static_cast<const rocegw_reply*>(message);
  int error = EPROTO;
  if (header->type == ROCEGW_MSG_CHUNK && size >= sizeof(rocegw_chunk_announcement)) {
    error = AddChunk(*static_cast<const rocegw_chunk_announcement*>(message), *descriptor);
  } else if (header->type == ROCEGW_MSG_WORKER && size >= sizeof(rocegw_worker_announcement)) {
    error = AddWorker(*static_cast<const rocegw_worker_announcement*>(message), descriptor);
  } else if (header->type == ROCEGW_MSG_RINGS_WAKE) {
    *descriptor = MoveAside(*descriptor);
    error = rings_.SetWake(descriptor) ? 0 : EPROTO;
  } else if (header->type > ROCEGW_MSG_WORKER) {
    error = 0;  // from a newer daemon; none of our requests needs it
  }
  CloseIfOpen(descriptor);
  return error;
}

void* Session::Resolve(void* session, const rocegw_location& location, uint64_t need) {
  auto* self = static_cast<Session*>(session);
  if (location.chunk >= __atomic_load_n(&self->chunk_count_, __ATOMIC_RELAXED)) return nullptr;
  const Chunk& chunk = self->chunks_[location.chunk];
  if (chunk.base == nullptr || location.offset > chunk.size ||
      chunk.size - location.offset < need || location.offset % 8 != 0) {
    return nullptr;
  }
  return chunk.base + location.offset;
}

LocationResolver Session::resolver() { return {&Session::Resolve, this}; }

bool Session::FindWorker(uint32_t worker, const rocegw_worker_line** line, int* wake_fd) {
  pthread_mutex_lock(&lock_);
  const bool found = worker < worker_count_ && workers_[worker].line != nullptr;
  if (found) {
    *line = workers_[worker].line;
    *wake_fd = workers_[worker].wake_fd;
  }
  pthread_mutex_unlock(&lock_);
  return found;
}

void Session::LockForFork() {
  pthread_mutex_lock(&g_lock);
  if (g_current != nullptr) pthread_mutex_lock(&g_current->lock_);
}

void Session::UnlockAfterFork() {
  if (g_current != nullptr) pthread_mutex_unlock(&g_current->lock_);
  pthread_mutex_unlock(&g_lock);
}

void Session::CutOff() {
  inherited_ = true;
  pthread_mutex_init(&lock_, nullptr);
  pthread_mutex_init(&send_lock_, nullptr);
  first_call_ = nullptr;
  CloseDescriptors();
  for (uint32_t i = 0; i < chunk_count_; ++i) {
    const Chunk& chunk = chunks_[i];
    if (chunk.base == nullptr) continue;
    RawMap(chunk.base, chunk.size, chunk.read_only ? PROT_READ : PROT_READ | PROT_WRITE,
           MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED | MAP_NORESERVE, -1, 0);
  }
  rings_.CutOff();
  keys_.ResetLock();
  ah_credits_.ResetLock();
}

void Session::CutOffInChild() {
  pthread_mutex_init(&g_lock, nullptr);
  // An attaching thread exists only in the parent.
  g_attaching = false;
  g_current = nullptr;
  for (Session* session = g_newest; session != nullptr; session = session->older_) {
    if (!session->inherited_) session->CutOff();
  }
}

}  // namespace rocegw::client
