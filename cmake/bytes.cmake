# psld_bytes(PATH OUT): the bytes of a file as elements of a C array, in lines.
function(psld_bytes path out)
    file(READ ${path} bytes HEX)
    string(REGEX REPLACE "(..)" "0x\\1," bytes "${bytes}")
    string(REGEX REPLACE "(....................................................................................................)" "\\1\n"
           bytes "${bytes}")
    set(${out} "${bytes}" PARENT_SCOPE)
endfunction()
