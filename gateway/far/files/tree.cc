// SPDX-License-Identifier: Apache-2.0
#include "gateway/far/files/tree.h"

#include <algorithm>
#include <cerrno>
#include <cstring>

namespace rocegw::far {

Tree::Tree(uint64_t most_names, const NewNode& root, timespec now) : most_names_(most_names) {
  Inode& inode = inodes_[next_number_];
  inode.number = next_number_++;
  inode.mode = root.mode;
  inode.uid = root.uid;
  inode.gid = root.gid;
  inode.links = 2;
  inode.lookups = 1;
  inode.parent = inode.number;
  inode.accessed = inode.changed = inode.modified = now;
}

Inode* Tree::Find(uint64_t number) {
  const auto found = inodes_.find(number);
  return found != inodes_.end() ? &found->second : nullptr;
}

Inode* Tree::Directory(uint64_t number, int* error) {
  Inode* inode = Find(number);
  if (inode == nullptr) {
    *error = -ENOENT;
  } else if (!inode->IsDirectory()) {
    *error = -ENOTDIR;
    inode = nullptr;
  }
  return inode;
}

Inode* Tree::Lookup(uint64_t parent, const char* name, int* error) {
  Inode* directory = Directory(parent, error);
  if (directory == nullptr) return nullptr;
  const auto found = directory->names.find(name);
  if (found == directory->names.end()) {
    *error = std::strlen(name) > kMostNameBytes ? -ENAMETOOLONG : -ENOENT;
    return nullptr;
  }
  return Find(found->second);
}

void Tree::Forget(uint64_t number, uint64_t count) {
  Inode* inode = Find(number);
  if (inode == nullptr) return;
  inode->lookups -= std::min(inode->lookups, count);
  if (inode->lookups != 0 || inode->links != 0) return;
  names_ -= inode->target.size() / kTargetBytes;
  Changed(*inode);
  inodes_.erase(number);
}

// The node counts as so many names more.
int Tree::Add(Inode& directory, const char* name, uint64_t number, uint64_t more, timespec now) {
  if (std::strlen(name) > kMostNameBytes) return -ENAMETOOLONG;
  if (directory.links == 0) return -ENOENT;
  if (directory.names.find(name) != directory.names.end()) return -EEXIST;
  if (names_ >= most_names_ || more >= most_names_ - names_) return -ENOSPC;
  directory.names.emplace(name, number);
  NameChanged(directory, name);
  directory.modified = directory.changed = now;
  names_ += 1 + more;
  return 0;
}

void Tree::Remove(Inode& directory, const char* name, timespec now) {
  directory.names.erase(directory.names.find(name));
  NameChanged(directory, name);
  directory.modified = directory.changed = now;
  names_--;
}

// Removes the node when the kernel does not know it any more.
void Tree::DropLink(Inode& inode, timespec now) {
  inode.links -= inode.IsDirectory() ? inode.links : 1;
  inode.changed = now;
  Changed(inode);
  Forget(inode.number, 0);
}

int Tree::Make(uint64_t parent, const char* name, const NewNode& node, timespec now, Inode** made) {
  int error = 0;
  Inode* directory = Directory(parent, &error);
  if (directory == nullptr) return error;
  const uint64_t number = next_number_;
  error = Add(*directory, name, number, node.target.size() / kTargetBytes, now);
  if (error != 0) return error;
  next_number_++;
  Inode& inode = inodes_[number];
  inode.number = number;
  inode.mode = node.mode;
  inode.uid = node.uid;
  inode.gid = node.gid;
  inode.device = node.device;
  inode.target = node.target;
  inode.file = node.file;
  inode.links = 1;
  inode.accessed = inode.changed = inode.modified = now;
  if ((directory->mode & S_ISGID) != 0) {
    inode.gid = directory->gid;
    if (inode.IsDirectory()) inode.mode |= S_ISGID;
  }
  if (inode.IsDirectory()) {
    inode.links = 2;
    inode.parent = parent;
    directory->links++;
  }
  Changed(inode);
  *made = &inode;
  return 0;
}

int Tree::Link(uint64_t number, uint64_t parent, const char* name, timespec now) {
  int error = 0;
  Inode* inode = Find(number);
  Inode* directory = Directory(parent, &error);
  if (inode == nullptr || directory == nullptr) return inode == nullptr ? -ENOENT : error;
  if (inode->IsDirectory()) return -EPERM;
  if (inode->links == UINT32_MAX) return -EMLINK;
  error = Add(*directory, name, number, 0, now);
  if (error != 0) return error;
  inode->links++;
  inode->changed = now;
  Changed(*inode);
  return 0;
}

int Tree::Unlink(uint64_t parent, const char* name, timespec now) {
  int error = 0;
  Inode* inode = Lookup(parent, name, &error);
  if (inode == nullptr) return error;
  if (inode->IsDirectory()) return -EISDIR;
  Remove(*Find(parent), name, now);
  DropLink(*inode, now);
  return 0;
}

int Tree::RemoveDirectory(uint64_t parent, const char* name, timespec now) {
  int error = 0;
  Inode* inode = Lookup(parent, name, &error);
  if (inode == nullptr) return error;
  if (!inode->IsDirectory()) return -ENOTDIR;
  if (!inode->names.empty()) return -ENOTEMPTY;
  Inode& directory = *Find(parent);
  Remove(directory, name, now);
  directory.links--;
  DropLink(*inode, now);
  return 0;
}

bool Tree::IsWithin(uint64_t directory, uint64_t ancestor) {
  for (uint64_t at = directory;; at = Find(at)->parent) {
    if (at == ancestor) return true;
    if (at == kRoot) return false;
  }
}

int Tree::Rename(uint64_t from, const char* name, uint64_t to, const char* new_name,
                 RenameKind kind, timespec now) {
  int error = 0;
  Inode* inode = Lookup(from, name, &error);
  if (inode == nullptr) return error;
  Inode* target = Directory(to, &error);
  if (target == nullptr) return error;
  if (std::strlen(new_name) > kMostNameBytes) return -ENAMETOOLONG;
  Inode& source = *Find(from);
  Inode* old = Lookup(to, new_name, &error);
  if (kind == RenameKind::kExchange && old == nullptr) return -ENOENT;
  if (kind == RenameKind::kNoReplace && old != nullptr) return -EEXIST;
  if (old == inode) return 0;
  if (target->links == 0) return -ENOENT;
  if (inode->IsDirectory() && IsWithin(to, inode->number)) return -EINVAL;
  if (kind == RenameKind::kExchange) {
    if (old->IsDirectory() && IsWithin(from, old->number)) return -EINVAL;
    source.names.find(name)->second = old->number;
    target->names.find(new_name)->second = inode->number;
    NameChanged(source, name);
    NameChanged(*target, new_name);
    Changed(*old);
    if (old->IsDirectory()) {
      old->parent = from;
      target->links--;
      source.links++;
    }
    old->changed = now;
  } else {
    if (old != nullptr && inode->IsDirectory()) {
      error = RemoveDirectory(to, new_name, now);
    } else if (old != nullptr) {
      error = Unlink(to, new_name, now);
    } else {
      error = 0;
    }
    if (error != 0) return error;
    // The old name goes first: a full tree can still be rearranged.
    Remove(source, name, now);
    error = Add(*target, new_name, inode->number, 0, now);
    if (error != 0) return error;
  }
  if (inode->IsDirectory()) {
    inode->parent = to;
    source.links--;
    target->links++;
  }
  inode->changed = source.modified = source.changed = target->modified = target->changed = now;
  Changed(*inode);
  Changed(source);
  Changed(*target);
  return 0;
}

// Records ----------------------------------------------------------------------------------------

void Tree::NameChanged(const Inode& directory, const char* name) {
  if (tracks_) changed_names_.emplace(directory.number, name);
  Changed(directory);
}

void Tree::Record(bool everything, RecordWriter& records) {
  if (everything) {
    for (const auto& [number, inode] : inodes_) {
      records.Node(number, inode);
      for (const auto& [name, leads_to] : inode.names) records.Name(number, name, leads_to);
    }
  } else {
    for (const uint64_t number : changed_nodes_) {
      if (const Inode* const inode = Find(number)) {
        records.Node(number, *inode);
      } else {
        records.NoNode(number);
      }
    }
    for (const auto& [number, name] : changed_names_) {
      const Inode* const directory = Find(number);
      if (directory == nullptr) continue;
      const auto found = directory->names.find(name);
      records.Name(number, name, found != directory->names.end() ? found->second : 0);
    }
  }
  changed_nodes_.clear();
  changed_names_.clear();
}

bool Tree::Restore(const KeptFiles& kept,
                   const std::function<FileData::FilePointer(uint64_t number)>& file) {
  inodes_.clear();
  names_ = 0;
  for (const auto& [number, node] : kept.nodes) {
    Inode& inode = inodes_[number];
    static_cast<NodeState&>(inode) = node.state;
    inode.number = number;
    inode.names = node.names;
    names_ += node.names.size() + node.state.target.size() / kTargetBytes;
    next_number_ = std::max(next_number_, number + 1);
    if (!S_ISREG(inode.mode)) continue;
    inode.file = file(number);
    if (inode.file == nullptr) return false;
  }
  inodes_.at(kRoot).lookups = 1;
  return true;
}

}  // namespace rocegw::far
