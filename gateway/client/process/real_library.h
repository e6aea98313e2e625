// SPDX-License-Identifier: Apache-2.0
// Files of the installed libibverbs and librdmacm, found even if the drop-in pair (drop_in/) has
// taken their names: by the file's path, which the loader does not confuse with the pair. Any
// thread.
#pragma once

namespace rocegw::client {

enum class RealLibrary { kVerbs, kConnectionManager };

// `version`: a symbol version, nullptr: the default one. Returns nullptr if the machine lacks the
// library, or the library the function.
void* FindInRealLibrary(RealLibrary which, const char* name, const char* version);

// Returns true if the address lies in a library of the drop-in pair, which would lead back to us.
bool IsInDropIn(const void* address);

}  // namespace rocegw::client
