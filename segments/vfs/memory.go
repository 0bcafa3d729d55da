package vfs

const unknownMemory = 24 << 30
