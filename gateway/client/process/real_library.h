// SPDX-License-Identifier: Apache-2.0
// The files of the installed libibverbs and librdmacm, found even where the drop-in pair (drop_in/)
// has taken their names: by the path of the file then, which the loader does not take for the pair.
// Any thread.
#pragma once

namespace rocegw::client {

enum class RealLibrary { kVerbs, kConnectionManager };

// version: a symbol version, nullptr: the default one. nullptr when the machine does not have the
// library, or the library not the function.
void* FindInRealLibrary(RealLibrary which, const char* name, const char* version);

// Whether the address lies in a library of the drop-in pair, which would lead back to us.
bool IsInDropIn(const void* address);

}  // namespace rocegw::client
