// SPDX-License-Identifier: Apache-2.0
#include "gateway/far/program/file_server.h"

#include <fcntl.h>
#include <linux/falloc.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <future>
#include <string>
#include <utility>
#include <vector>

#include "gateway/far/files/listing.h"

namespace rocegw::far {
namespace {

// Only the kernel changes the tree, and it forgets what it changes.
constexpr double kValidSeconds = 3600;
constexpr uint32_t kMostRequestBytes = 1 << 20;
constexpr uint16_t kMostBackground = 64;  // read-ahead and write-back requests of the kernel

timespec Now() {
  timespec now{};
  clock_gettime(CLOCK_REALTIME, &now);
  return now;
}

NewNode RootNode() {
  NewNode root;
  root.mode = S_IFDIR | 0755;
  root.uid = getuid();
  root.gid = getgid();
  return root;
}

}  // namespace

FileServer::FileServer(Space& space, const Limits& limits)
    : write_back_(limits.write_back),
      data_(space, limits.size, limits.most_in_flight),
      tree_(limits.most_names, RootNode(), Now()) {}

Status FileServer::Keep(std::unique_ptr<Journal> journal, KeptFiles kept) {
  data_.KeepRecords([this] { keeper_->Hurry(); });
  tree_.KeepRecords();
  if (!kept.nodes.empty()) {
    const auto file = [&](uint64_t number) { return data_.Restore(number, kept.data[number]); };
    if (!kept.Finish(Tree::kRoot) || !tree_.Restore(kept, file)) {
      return {EINVAL, "the names that are kept are no tree of files"};
    }
    // A lost page stays one.
    for (const auto& [number, ignored] : kept.data) (void)data_.ZeroTail(FileOf(number));
  }
  keeper_ = std::make_unique<Keeper>(
      std::move(journal),
      Keeper::Calls{.record = [this](bool everything) { return Record(everything); },
                    .flush = [this] { return FlushData(); },
                    .committed = [this](bool is_kept) { data_.Committed(is_kept); }});
  keeper_->Start();
  return OkStatus();
}

std::string FileServer::Record(bool everything) {
  RecordWriter records;
  const std::lock_guard lock(mutex_);
  tree_.Record(everything, records);
  data_.Record(everything, records);
  return records.Take();
}

int FileServer::FlushData() {
  std::promise<int> flushed;
  data_.Flush([&flushed](int status) { flushed.set_value(status); });
  return flushed.get_future().get();
}

FileServer::Names FileServer::GetNames() {
  const std::lock_guard lock(mutex_);
  return {tree_.names(), tree_.most_names()};
}

void FileServer::FillAttributes(const Inode& inode, struct stat* out) {
  std::memset(out, 0, sizeof *out);
  out->st_ino = inode.number;
  out->st_mode = inode.mode;
  out->st_nlink = inode.links;
  out->st_uid = inode.uid;
  out->st_gid = inode.gid;
  out->st_rdev = inode.device;
  out->st_blksize = Blocks::kBytes;
  out->st_atim = inode.accessed;
  out->st_ctim = inode.changed;
  out->st_mtim = inode.modified;
  out->st_size = static_cast<off_t>(inode.target.size());
  if (inode.file != nullptr) {
    const FileData::State state = data_.GetState(inode.file);
    out->st_size = static_cast<off_t>(state.size);
    out->st_blocks = static_cast<blkcnt_t>(state.blocks * (Blocks::kBytes / 512));
    out->st_mtim = state.modified;
    if (std::pair(state.modified.tv_sec, state.modified.tv_nsec) >
        std::pair(out->st_ctim.tv_sec, out->st_ctim.tv_nsec)) {
      out->st_ctim = state.modified;
    }
  }
}

bool FileServer::Attributes(fuse_ino_t number, struct stat* out) {
  const std::lock_guard lock(mutex_);
  const Inode* inode = tree_.Find(number);
  if (inode != nullptr) FillAttributes(*inode, out);
  return inode != nullptr;
}

FileData::FilePointer FileServer::FileOf(fuse_ino_t number) {
  const std::lock_guard lock(mutex_);
  const Inode* inode = tree_.Find(number);
  return inode != nullptr ? inode->file : nullptr;
}

// Replies with the node, which the kernel references from then on. The caller has the lock.
void FileServer::ReplyEntry(fuse_req_t request, int error, Inode* inode, fuse_file_info* created) {
  if (error != 0) {
    fuse_reply_err(request, -error);
    return;
  }
  fuse_entry_param entry{};
  entry.ino = inode->number;
  entry.attr_timeout = kValidSeconds;
  entry.entry_timeout = kValidSeconds;
  FillAttributes(*inode, &entry.attr);
  tree_.Reference(*inode);
  const int failed = created != nullptr ? fuse_reply_create(request, &entry, created)
                                        : fuse_reply_entry(request, &entry);
  if (failed != 0) tree_.Forget(entry.ino, 1);
}

void FileServer::Make(fuse_req_t request, fuse_ino_t parent, const char* name, NewNode node,
                      fuse_file_info* created) {
  const timespec now = Now();
  const fuse_ctx* caller = fuse_req_ctx(request);
  node.uid = caller->uid;
  node.gid = caller->gid;
  if (S_ISREG(node.mode)) node.file = data_.Make(now);
  const std::lock_guard lock(mutex_);
  Inode* inode = nullptr;
  const int error = tree_.Make(parent, name, node, now, &inode);
  if (error == 0 && inode->file != nullptr) data_.SetNumber(inode->file, inode->number);
  ReplyEntry(request, error, inode, created);
}

int FileServer::SetAttributes(fuse_ino_t number, const struct stat& wanted, int which) {
  const timespec now = Now();
  if ((which & FUSE_SET_ATTR_SIZE) != 0) {
    const FileData::FilePointer file = FileOf(number);
    if (file == nullptr) return -EISDIR;
    const int error = data_.SetSize(file, static_cast<uint64_t>(wanted.st_size), now);
    if (error != 0) return error;
  }
  const std::lock_guard lock(mutex_);
  Inode* inode = tree_.Find(number);
  if (inode == nullptr) return -ENOENT;
  if ((which & FUSE_SET_ATTR_MODE) != 0) {
    inode->mode = (inode->mode & S_IFMT) | (wanted.st_mode & ~static_cast<mode_t>(S_IFMT));
  }
  if ((which & FUSE_SET_ATTR_UID) != 0) inode->uid = wanted.st_uid;
  if ((which & FUSE_SET_ATTR_GID) != 0) inode->gid = wanted.st_gid;
  if ((which & FUSE_SET_ATTR_ATIME) != 0) inode->accessed = wanted.st_atim;
  if ((which & FUSE_SET_ATTR_ATIME_NOW) != 0) inode->accessed = now;
  if ((which & (FUSE_SET_ATTR_MTIME | FUSE_SET_ATTR_MTIME_NOW)) != 0) {
    inode->modified = (which & FUSE_SET_ATTR_MTIME_NOW) != 0 ? now : wanted.st_mtim;
    if (inode->file != nullptr) data_.SetModified(inode->file, inode->modified);
  }
  inode->changed = now;
  tree_.Changed(*inode);
  return 0;
}

// Requests of the kernel. Each is replied to exactly once.
struct FuseCalls {
  static FileServer& Of(fuse_req_t request) {
    return *static_cast<FileServer*>(fuse_req_userdata(request));
  }

  static void Init(void* user, fuse_conn_info* connection) {
    // Data is copied once anyway, between the kernel and registered memory.
    connection->want &=
        ~static_cast<unsigned>(FUSE_CAP_SPLICE_READ | FUSE_CAP_SPLICE_WRITE | FUSE_CAP_SPLICE_MOVE);
    // The kernel clears set-user-ID bits itself, and truncates by SETATTR; nothing but the kernel
    // changes files.
    connection->want &= ~static_cast<unsigned>(FUSE_CAP_ATOMIC_O_TRUNC | FUSE_CAP_AUTO_INVAL_DATA |
                                               FUSE_CAP_HANDLE_KILLPRIV);
    if (static_cast<FileServer*>(user)->write_back_) connection->want |= FUSE_CAP_WRITEBACK_CACHE;
    connection->max_write = kMostRequestBytes;
    connection->max_readahead = kMostRequestBytes;
    connection->max_background = kMostBackground;
    connection->congestion_threshold = kMostBackground;
  }

  static void Lookup(fuse_req_t request, fuse_ino_t parent, const char* name) {
    FileServer& server = Of(request);
    const std::lock_guard lock(server.mutex_);
    int error = 0;
    Inode* inode = server.tree_.Lookup(parent, name, &error);
    server.ReplyEntry(request, error, inode, nullptr);
  }

  static void Forget(fuse_req_t request, fuse_ino_t number, uint64_t count) {
    FileServer& server = Of(request);
    {
      const std::lock_guard lock(server.mutex_);
      server.tree_.Forget(number, count);
    }
    fuse_reply_none(request);
  }

  static void ForgetMany(fuse_req_t request, size_t count, fuse_forget_data* forgotten) {
    FileServer& server = Of(request);
    {
      const std::lock_guard lock(server.mutex_);
      for (size_t each = 0; each < count; each++) {
        server.tree_.Forget(forgotten[each].ino, forgotten[each].nlookup);
      }
    }
    fuse_reply_none(request);
  }

  static void GetAttributes(fuse_req_t request, fuse_ino_t number, fuse_file_info* /*handle*/) {
    struct stat attributes {};
    if (Of(request).Attributes(number, &attributes)) {
      fuse_reply_attr(request, &attributes, kValidSeconds);
    } else {
      fuse_reply_err(request, ENOENT);
    }
  }

  static void SetAttributes(fuse_req_t request, fuse_ino_t number, struct stat* wanted, int which,
                            fuse_file_info* handle) {
    const int error = Of(request).SetAttributes(number, *wanted, which);
    if (error != 0) {
      fuse_reply_err(request, -error);
    } else {
      GetAttributes(request, number, handle);
    }
  }

  static void ReadLink(fuse_req_t request, fuse_ino_t number) {
    FileServer& server = Of(request);
    std::string target;
    {
      const std::lock_guard lock(server.mutex_);
      const Inode* inode = server.tree_.Find(number);
      if (inode != nullptr) target = inode->target;
    }
    fuse_reply_readlink(request, target.c_str());
  }

  static void MakeNode(fuse_req_t request, fuse_ino_t parent, const char* name, mode_t mode,
                       dev_t device) {
    NewNode node;
    node.mode = mode;
    node.device = device;
    Of(request).Make(request, parent, name, node, nullptr);
  }

  static void MakeDirectory(fuse_req_t request, fuse_ino_t parent, const char* name, mode_t mode) {
    NewNode node;
    node.mode = S_IFDIR | (mode & ~static_cast<mode_t>(S_IFMT));
    Of(request).Make(request, parent, name, node, nullptr);
  }

  static void MakeSymbolicLink(fuse_req_t request, const char* target, fuse_ino_t parent,
                               const char* name) {
    NewNode node;
    node.mode = S_IFLNK | 0777;
    node.target = target;
    Of(request).Make(request, parent, name, node, nullptr);
  }

  static void Create(fuse_req_t request, fuse_ino_t parent, const char* name, mode_t mode,
                     fuse_file_info* handle) {
    NewNode node;
    node.mode = S_IFREG | (mode & ~static_cast<mode_t>(S_IFMT));
    handle->keep_cache = 1;
    Of(request).Make(request, parent, name, node, handle);
  }

  static void Link(fuse_req_t request, fuse_ino_t number, fuse_ino_t parent, const char* name) {
    FileServer& server = Of(request);
    const std::lock_guard lock(server.mutex_);
    const int error = server.tree_.Link(number, parent, name, Now());
    server.ReplyEntry(request, error, server.tree_.Find(number), nullptr);
  }

  static void Unlink(fuse_req_t request, fuse_ino_t parent, const char* name) {
    FileServer& server = Of(request);
    int error = 0;
    {
      const std::lock_guard lock(server.mutex_);
      error = server.tree_.Unlink(parent, name, Now());
    }
    fuse_reply_err(request, -error);
  }

  static void RemoveDirectory(fuse_req_t request, fuse_ino_t parent, const char* name) {
    FileServer& server = Of(request);
    int error = 0;
    {
      const std::lock_guard lock(server.mutex_);
      error = server.tree_.RemoveDirectory(parent, name, Now());
    }
    fuse_reply_err(request, -error);
  }

  static void Rename(fuse_req_t request, fuse_ino_t from, const char* name, fuse_ino_t to,
                     const char* new_name, unsigned flags) {
    Tree::RenameKind kind = Tree::RenameKind::kReplace;
    if (flags == RENAME_NOREPLACE) kind = Tree::RenameKind::kNoReplace;
    if (flags == RENAME_EXCHANGE) kind = Tree::RenameKind::kExchange;
    if (flags != 0 && kind == Tree::RenameKind::kReplace) {
      fuse_reply_err(request, EINVAL);
      return;
    }
    FileServer& server = Of(request);
    int error = 0;
    {
      const std::lock_guard lock(server.mutex_);
      error = server.tree_.Rename(from, name, to, new_name, kind, Now());
    }
    fuse_reply_err(request, -error);
  }

  // Cached pages stay valid: nothing but the kernel changes files.
  static void Open(fuse_req_t request, fuse_ino_t /*number*/, fuse_file_info* handle) {
    handle->keep_cache = 1;
    fuse_reply_open(request, handle);
  }

  static void Read(fuse_req_t request, fuse_ino_t number, size_t length, off_t offset,
                   fuse_file_info* /*handle*/) {
    FileServer& server = Of(request);
    const FileData::FilePointer file = server.FileOf(number);
    if (file == nullptr || offset < 0) {
      fuse_reply_err(request, EISDIR);
      return;
    }
    server.data_.Read(file, static_cast<uint64_t>(offset), length,
                      [request](int status, const uint8_t* data, uint64_t got) {
                        if (status != 0) {
                          fuse_reply_err(request, -status);
                        } else {
                          fuse_reply_buf(request, reinterpret_cast<const char*>(data), got);
                        }
                      });
  }

  static void Write(fuse_req_t request, fuse_ino_t number, const char* data, size_t length,
                    off_t offset, fuse_file_info* /*handle*/) {
    FileServer& server = Of(request);
    const FileData::FilePointer file = server.FileOf(number);
    if (file == nullptr || offset < 0) {
      fuse_reply_err(request, EISDIR);
      return;
    }
    server.data_.Write(file, static_cast<uint64_t>(offset), reinterpret_cast<const uint8_t*>(data),
                       length, Now(), [request, length](int status) {
                         if (status != 0) {
                           fuse_reply_err(request, -status);
                         } else {
                           fuse_reply_write(request, length);
                         }
                       });
  }

  // A write is answered when the donors have it: only a disk copy, and a journal of the names, may
  // lack it still.
  static void Sync(fuse_req_t request, fuse_ino_t /*number*/, int /*data_only*/,
                   fuse_file_info* /*handle*/) {
    FileServer& server = Of(request);
    const auto done = [request](int status) { fuse_reply_err(request, -status); };
    if (server.keeper_ != nullptr) {
      server.keeper_->Sync(done);
    } else {
      server.data_.Flush(done);
    }
  }

  static void OpenDirectory(fuse_req_t request, fuse_ino_t number, fuse_file_info* handle) {
    FileServer& server = Of(request);
    auto listing = std::make_unique<Listing>(number);
    {
      const std::lock_guard lock(server.mutex_);
      const Inode* directory = server.tree_.Find(number);
      if (directory == nullptr || !directory->IsDirectory()) {
        fuse_reply_err(request, directory == nullptr ? ENOENT : ENOTDIR);
        return;
      }
    }
    // The handle owns the listing, unless the kernel does not want the reply any more.
    Listing* owned = listing.release();
    handle->fh = reinterpret_cast<uintptr_t>(owned);
    if (fuse_reply_open(request, handle) != 0) delete owned;
  }

  static void ReadDirectory(fuse_req_t request, fuse_ino_t /*number*/, size_t size, off_t offset,
                            fuse_file_info* handle) {
    FileServer& server = Of(request);
    std::vector<Listing::Entry> entries;
    for (bool found = false; !found;) {
      const std::lock_guard lock(server.mutex_);
      found = reinterpret_cast<Listing*>(handle->fh)
                  ->Read(server.tree_, static_cast<uint64_t>(std::max<off_t>(offset, 0)), &entries);
    }
    std::vector<char> page(std::min<size_t>(size, kMostRequestBytes));
    size_t used = 0;
    for (const Listing::Entry& entry : entries) {
      struct stat attributes {};
      attributes.st_ino = entry.number;
      attributes.st_mode = entry.mode;
      const size_t bytes =
          fuse_add_direntry(request, page.data() + used, page.size() - used, entry.name.c_str(),
                            &attributes, static_cast<off_t>(entry.offset));
      if (bytes > page.size() - used) break;
      used += bytes;
    }
    fuse_reply_buf(request, page.data(), used);
  }

  static void ReleaseDirectory(fuse_req_t request, fuse_ino_t /*number*/, fuse_file_info* handle) {
    delete reinterpret_cast<Listing*>(handle->fh);
    fuse_reply_err(request, 0);
  }

  static void StatFileSystem(fuse_req_t request, fuse_ino_t /*number*/) {
    FileServer& server = Of(request);
    const FileData::Counts counts = server.data_.GetCounts();
    const FileServer::Names names = server.GetNames();
    struct statvfs out {};
    out.f_bsize = Blocks::kBytes;
    out.f_frsize = Blocks::kBytes;
    out.f_blocks = counts.blocks;
    out.f_bfree = out.f_bavail = counts.free_blocks;
    out.f_files = names.most;
    out.f_ffree = out.f_favail = names.most - names.used;
    out.f_namemax = Tree::kMostNameBytes;
    fuse_reply_statfs(request, &out);
  }

  static void Allocate(fuse_req_t request, fuse_ino_t number, int mode, off_t offset, off_t length,
                       fuse_file_info* /*handle*/) {
    FileServer& server = Of(request);
    const FileData::FilePointer file = server.FileOf(number);
    const bool keep_size = (mode & FALLOC_FL_KEEP_SIZE) != 0;
    const int kind = mode & ~FALLOC_FL_KEEP_SIZE;
    const auto begin = static_cast<uint64_t>(offset);
    const auto bytes = static_cast<uint64_t>(length);
    int error = -EOPNOTSUPP;
    if (file == nullptr || offset < 0 || length <= 0) {
      error = file == nullptr ? -EISDIR : -EINVAL;
    } else if (kind == 0) {
      error = server.data_.Reserve(file, begin, bytes, keep_size, Now());
    } else if (kind == FALLOC_FL_PUNCH_HOLE || kind == FALLOC_FL_ZERO_RANGE) {
      error = server.data_.Zero(file, begin, bytes, keep_size, Now());
    }
    fuse_reply_err(request, -error);
  }

  static void Seek(fuse_req_t request, fuse_ino_t number, off_t offset, int whence,
                   fuse_file_info* /*handle*/) {
    FileServer& server = Of(request);
    if (server.write_back_) {
      // Data may still be in the page cache: the kernel then takes all of the file for data.
      fuse_reply_err(request, ENOSYS);
      return;
    }
    const FileData::FilePointer file = server.FileOf(number);
    if (file == nullptr || (whence != SEEK_DATA && whence != SEEK_HOLE)) {
      fuse_reply_err(request, EINVAL);
      return;
    }
    const int64_t found =
        offset < 0 ? -ENXIO
                   : server.data_.Seek(file, static_cast<uint64_t>(offset), whence == SEEK_DATA);
    if (found < 0) {
      fuse_reply_err(request, static_cast<int>(-found));
    } else {
      fuse_reply_lseek(request, found);
    }
  }
};

const fuse_lowlevel_ops& FileServer::Operations() {
  static const fuse_lowlevel_ops operations = [] {
    fuse_lowlevel_ops ops{};
    ops.init = FuseCalls::Init;
    ops.lookup = FuseCalls::Lookup;
    ops.forget = FuseCalls::Forget;
    ops.forget_multi = FuseCalls::ForgetMany;
    ops.getattr = FuseCalls::GetAttributes;
    ops.setattr = FuseCalls::SetAttributes;
    ops.readlink = FuseCalls::ReadLink;
    ops.mknod = FuseCalls::MakeNode;
    ops.mkdir = FuseCalls::MakeDirectory;
    ops.unlink = FuseCalls::Unlink;
    ops.rmdir = FuseCalls::RemoveDirectory;
    ops.symlink = FuseCalls::MakeSymbolicLink;
    ops.rename = FuseCalls::Rename;
    ops.link = FuseCalls::Link;
    ops.open = FuseCalls::Open;
    ops.create = FuseCalls::Create;
    ops.read = FuseCalls::Read;
    ops.write = FuseCalls::Write;
    ops.fsync = FuseCalls::Sync;
    ops.fsyncdir = FuseCalls::Sync;
    ops.opendir = FuseCalls::OpenDirectory;
    ops.readdir = FuseCalls::ReadDirectory;
    ops.releasedir = FuseCalls::ReleaseDirectory;
    ops.statfs = FuseCalls::StatFileSystem;
    ops.fallocate = FuseCalls::Allocate;
    ops.lseek = FuseCalls::Seek;
    return ops;
  }();
  return operations;
}

}  // namespace rocegw::far
